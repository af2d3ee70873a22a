"""What the body of a call says: messages, options, which conversation, and the tools that the caller runs itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from agentcms.wire.names import join_path
from agents_app.configuration.schema import ConfigError, Issue, collecting_issues
from runs_app.requests.messages import read_messages
from runs_app.requests.options import read_options

MOST_TOOLS = 128
LONGEST_KEY = 256
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

# What would change the answer and is not done here: to ignore it would be to answer another question.
NOT_DONE = {
    "instructions": "What the agent is told stands in its instructions, and comes from its version.",
    "system": "What the agent is told stands in its instructions, and comes from its version.",
    "context": "Send what was said before as messages.",
    "model": "The model comes from the agent's version.",
    "output": "An answer is a text here.",
    "structuredOutput": "An answer is a text here.",
    "toolsets": "Send the caller's own tools as clientTools; the server's come from the agent's version.",
    "requireToolApproval": "A call of a tool cannot be held for approval yet.",
    "scorers": "The scorers come from the agent's version.",
    "versions": "Name a version with versionId, versionNumber or status in the address.",
}


class Call(NamedTuple):
    """A checked body; the messages are read where the run starts."""

    messages: Any
    options: dict[str, Any]
    client_tools: list[dict[str, Any]]
    thread: str
    resource: str


def read_call(body: Mapping[str, Any]) -> Call:
    """Raises ShapeError with the wire paths of all that is wrong."""
    issues = [Issue(name, f"{said} Leave this out.") for name, said in NOT_DONE.items() if body.get(name)]
    if "messages" not in body:
        issues.append(Issue("messages", "This is required."))
    call = Call(body.get("messages"), {}, [], "", "")
    with collecting_issues(issues):
        call = call._replace(options=read_options(body))
    with collecting_issues(issues):
        call = call._replace(client_tools=read_client_tools(body.get("clientTools")))
    with collecting_issues(issues):
        thread, resource = read_memory(body)
        call = call._replace(thread=thread, resource=resource)
    if issues and "messages" in body:
        with collecting_issues(issues):
            read_messages(call.messages)
    if issues:
        raise ConfigError(issues)
    return call


def read_memory(body: Mapping[str, Any]) -> tuple[str, str]:
    """The conversation that the messages belong to, and whose it is; the older form names both at the top."""
    memory = body.get("memory")
    if memory is None:
        memory = {"thread": body.get("threadId"), "resource": body.get("resourceId")}
    if not isinstance(memory, dict):
        raise ConfigError([Issue("memory", "This must be an object.")])
    thread = memory.get("thread")
    if isinstance(thread, dict):
        thread = thread.get("id")
    issues: list[Issue] = []
    named = []
    for path, value in (("memory.thread", thread), ("memory.resource", memory.get("resource"))):
        with collecting_issues(issues):
            named.append(key(path, value))
    if issues:
        raise ConfigError(issues)
    return named[0], named[1]


def key(path: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_KEY:
        raise ConfigError([Issue(path, f"Give a text of at most {LONGEST_KEY} characters.")])
    return value


def read_client_tools(value: Any) -> list[dict[str, Any]]:
    """The tools that the caller runs itself, by name: `{description?, inputSchema?}`."""
    if value is None:
        return []
    if not isinstance(value, dict) or len(value) > MOST_TOOLS:
        raise ConfigError([Issue("clientTools", f"This must be an object of at most {MOST_TOOLS} tools by name.")])
    issues: list[Issue] = []
    tools = []
    for name, said in value.items():
        with collecting_issues(issues):
            tools.append(client_tool(name, said))
    if issues:
        raise ConfigError(issues)
    return tools


def client_tool(name: str, said: Any) -> dict[str, Any]:
    path = join_path("clientTools", name)
    if not TOOL_NAME.fullmatch(name):
        raise ConfigError([Issue(path, "A tool's name has at most 64 letters, digits, '_' and '-'.")])
    if not isinstance(said, dict):
        raise ConfigError([Issue(path, "This must be an object.")])
    schema = said.get("inputSchema") or said.get("parameters") or {"type": "object", "properties": {}}
    description = said.get("description") or ""
    if not isinstance(schema, dict) or not isinstance(description, str):
        raise ConfigError([Issue(path, "A tool has a description, which is a text, and an inputSchema, an object.")])
    return {"name": name, "description": description, "schema": schema}
