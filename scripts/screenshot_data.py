"""Data that `screenshots.py` adds to the demo data: tools from outside, and agents with what no demo agent has."""

import json
import subprocess
import sys
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent
OFFICE = [sys.executable, str(ROOT / "tests" / "mcp_servers" / "office.py"), "stdio"]
CODER = [sys.executable, str(ROOT / "tests" / "acp_agent.py")]
AGENT_ID = "stock-keeper"
TOOLS = ["stock-count", "acp-coder"]
MODEL = {"provider": "demo", "name": "storyteller"}
RULES = {
    "operator": "AND",
    "conditions": [
        {"field": "tier", "operator": "equals", "value": "enterprise"},
        {"operator": "OR", "conditions": [{"field": "seats", "operator": "greater_than", "value": 50}]},
    ],
}
PROFILE = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}


def write_commands(data_dir: Path) -> dict[str, str]:
    """Write the files that allow the programs of the tests. Return the variables that name the files."""
    variables = {}
    for variable, key, argv in (("MCP_COMMANDS", "office", OFFICE), ("ACP_COMMANDS", "coder", CODER)):
        file = data_dir / f"{variable.lower()}.json"
        file.write_text(json.dumps({key: {"argv": argv, "sandbox": "none"}}))
        variables[variable] = str(file)
    return variables


def create_outside_tools(base_url: str, environment: dict[str, str], username: str) -> None:
    """Add an MCP server, an ACP agent, and an agent with a running background task."""
    command = [sys.executable, "manage.py", "create_api_key", username]
    key = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout.strip()
    client = httpx.Client(base_url=f"{base_url}/api", headers={"Authorization": f"Bearer {key}"}, timeout=60)
    with client:
        for path, body in REQUESTS:
            client.post(path, json=body).raise_for_status()


REQUESTS = [
    (
        "/stored/mcp-clients",
        {
            "name": "Office",
            "ownerId": "support",
            "servers": {"office": {"type": "stdio", "commandKey": "office"}},
        },
    ),
    ("/stored/acp-agents", {"id": "coder", "title": "Coder", "commandKey": "coder"}),
    (
        "/stored/agents",
        {
            "id": AGENT_ID,
            "name": "Stock keeper",
            "description": "Counts the stock in the background, and gives tasks to an ACP agent.",
            "instructions": "Count what the customer asks for.",
            "model": MODEL,
            "tools": TOOLS,
            "memory": "last-messages",
        },
    ),
    (
        f"/agents/{AGENT_ID}/generate",
        {
            "messages": "stock-count tea",
            "memory": {"thread": "stock", "resource": "warehouse"},
        },
    ),
    (
        "/stored/agents",
        {
            "id": "returns-desk",
            "name": "Returns desk",
            "description": "Refunds orders after a person agreed.",
            "instructions": "Refund what was not delivered.",
            "model": MODEL,
            "tools": ["issue-refund", "arrange-delivery"],
            "backgroundTasks": {"tools": {"arrange-delivery": {"enabled": True, "timeoutMs": 60000}}},
            "conditional": {
                "model": [{"value": {**MODEL, "temperature": 0.2}, "rules": RULES}],
                "memory": [{"value": {"options": {"lastMessages": 20}}, "rules": RULES}],
            },
            "contextKeys": ["tier"],
        },
    ),
    (
        "/stored/agents",
        {
            "id": "profile-keeper",
            "name": "Profile keeper",
            "instructions": "Note the name and the age.",
            "model": MODEL,
            "memory": {"options": {"workingMemory": {"enabled": True, "schema": PROFILE}}},
        },
    ),
    (
        "/agents/profile-keeper/generate",
        {
            "messages": "I am Ada, and I am thirty.",
            "memory": {"thread": "profile", "resource": "ada"},
        },
    ),
]
