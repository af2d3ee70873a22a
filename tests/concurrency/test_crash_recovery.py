"""Killing the server repeatedly during edits."""

import os
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count, pairwise

import httpx
import psutil
import pytest

from tests.conftest import DRILL
from tests.served import Served, wait_until
from tests.served_accounts import prepared

AGENTS = "/api/stored/agents"
KILLS = 100 if DRILL else 5
EDITORS = ("one", "one", "two", "two")  # the agent of each editor


@pytest.fixture
def copy(tmp_path) -> Iterator[Served]:
    """Create a prepared copy with two agents. Only its web server is started."""
    with prepared(tmp_path / "var", AGENT_VERSION_LIMIT="1000000", LOG_LEVEL="ERROR") as copy:
        with web_server(copy), copy.client(copy.keys["root"]) as client:
            for agent_id in ("one", "two"):
                body = {"id": agent_id, "name": "A", "instructions": "", "model": {"provider": "demo", "name": "echo"}}
                assert client.post(AGENTS, json=body).status_code == 201
        yield copy


@contextmanager
def web_server(copy):
    """Run the web server in its own process group and kill it after the block."""
    process = copy.start_module("agentcms.server.web", log=copy.log, start_new_session=True, WEB_WORKERS="1")
    try:
        wait_until(copy.responds, 60, f"the first page; see {copy.log}")
        yield
    finally:
        everybody = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        wait_until(lambda: all(has_ended(member) for member in everybody), 10)


def has_ended(process):
    """Return True if a process has ended. Process 1 of a container may leave zombies."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def edit_until_killed(copy, key, agent_id, name, answered):
    """Edit until the server dies, and record version number and text of every answered edit."""
    with copy.client(key) as client, suppress(httpx.TransportError):
        for number in count():
            text = f"{name}.{number}"
            answer = client.patch(f"{AGENTS}/{agent_id}", json={"description": text, "metadata": {"said": text}})
            assert answer.status_code == 200, answer.text
            answered[answer.json()["activeVersionNumber"]] = text


def history(client, agent_id):
    """Check the newest thousand versions of an agent. Return their texts by number."""
    agent = client.get(f"{AGENTS}/{agent_id}").json()
    page = client.get(f"{AGENTS}/{agent_id}/versions", params={"perPage": 1000}).json()["versions"]
    assert all(newer["versionNumber"] == older["versionNumber"] + 1 for newer, older in pairwise(page))
    assert all(newer["basedOn"] == older["versionNumber"] for newer, older in pairwise(page))
    assert agent["activeVersionId"] == agent["headVersionId"] == page[0]["id"]
    assert {name: agent[name] for name in page[0]["snapshot"]} == page[0]["snapshot"]
    texts = {version["versionNumber"]: version["snapshot"]["description"] for version in page}
    assert texts == {version["versionNumber"]: version["snapshot"]["metadata"].get("said", "") for version in page}
    return texts


def lost_edits(client, answered):
    """Return the answered edits that the history lacks."""
    histories = {agent_id: history(client, agent_id) for agent_id in answered}
    return [
        (agent_id, number, text)
        for agent_id, texts in answered.items()
        for number, text in texts.items()
        if histories[agent_id].get(number) != text
    ]


def test_every_answered_edit_survives_killing_the_server(copy):
    key = copy.keys["root"]
    answered = {"one": {}, "two": {}}
    for kill in range(KILLS):
        enough = random.Random(kill).randint(4, 40)
        with ThreadPoolExecutor(len(EDITORS)) as pool, web_server(copy), copy.client(key) as client:
            assert lost_edits(client, answered) == []
            answered = {"one": {}, "two": {}}
            editors = [
                pool.submit(edit_until_killed, copy, key, agent_id, f"{kill}.{number}", answered[agent_id])
                for number, agent_id in enumerate(EDITORS)
            ]
            wait_until(lambda: sum(map(len, answered.values())) >= enough, 30)  # noqa: B023
        assert [editor.result() for editor in editors] == [None] * len(EDITORS)

    with web_server(copy), copy.client(key) as client:
        assert lost_edits(client, answered) == []
    copy.manage("check_history")


def delete_and_restore_until_killed(copy, key, answered):
    """Delete and restore an agent in turn until the server dies, and record the answered requests."""
    trash = "/api/stored/deleted-agents"
    with copy.client(key) as client, suppress(httpx.TransportError):
        while True:
            assert client.delete(f"{AGENTS}/one").status_code == 200
            answered.append("deleted")
            for entry in client.get(trash).json()["deletedAgents"]:
                assert client.post(f"{trash}/{entry['id']}/restore").status_code == 201
                answered.append("restored")


def test_an_agent_is_live_or_in_the_trash_after_killing_the_server(copy):
    key = copy.keys["root"]
    with web_server(copy), copy.client(key) as client:
        for number in range(20):
            assert client.patch(f"{AGENTS}/one", json={"description": f"{number} " * 500}).status_code == 200
        before = client.get(f"{AGENTS}/one/versions", params={"perPage": 1000}).json()

    for kill in range(KILLS if DRILL else 2):
        answered, enough = [], random.Random(kill).randint(1, 12)
        with ThreadPoolExecutor(1) as pool, web_server(copy), copy.client(key) as client:
            deleted = client.get("/api/stored/deleted-agents").json()["deletedAgents"]
            assert len(deleted) == (client.get(f"{AGENTS}/one").status_code == 404)
            for entry in deleted:
                client.post(f"/api/stored/deleted-agents/{entry['id']}/restore")
            assert client.get(f"{AGENTS}/one/versions", params={"perPage": 1000}).json() == before
            caller = pool.submit(delete_and_restore_until_killed, copy, key, answered)
            wait_until(lambda: len(answered) >= enough, 30)  # noqa: B023
        assert caller.result() is None
    copy.manage("check_history")
