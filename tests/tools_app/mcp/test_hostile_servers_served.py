"""Servers that break the protocol, used by several clients of a running copy at once. It serves others meanwhile."""

import itertools
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import mcp_servers
from tests.served import Served, wait_until
from tests.shop_server import answers
from tools_app.demo.address import HOST, choose_free_port

PROGRAM = Path(mcp_servers.__file__).parent / "hostile.py"
ATTACKS = ("honest", "no-json", "silent", "endless", "deep", "error-huge", "not-utf8", "structured-nul")
LATE = {"silent"}  # whose answer never comes
PLENTY = 20  # seconds in which a copy on a busy machine answers a simple request


@pytest.fixture(scope="module")
def hostile_url():
    port = choose_free_port()
    with subprocess.Popen([sys.executable, str(PROGRAM), "http", HOST, str(port)]) as process:
        try:
            wait_until(lambda: answers(port), 60, "the hostile server")
            yield f"http://{HOST}:{port}"
        finally:
            process.kill()


@pytest.fixture
def servers(served: Served, hostile_url):
    """Return the keys of a server for each attack on a listing or a call, all of which were listed."""
    keys = [f"{phase}-{name}" for phase in ("list", "call") for name in ATTACKS]
    with served.client(served.keys["root"]) as cms:
        for key in keys:
            config = {"type": "http", "url": f"{hostile_url}/{key}", **timeouts_of(key)}
            cms.post("/api/stored/mcp-clients", json={"name": key, "servers": {key: config}}).raise_for_status()
        wait_until(lambda: all(map(is_listed, bodies(cms, keys))), 120, lambda: bodies(cms, keys))
        yield keys
        for key in keys:
            cms.delete(f"/api/stored/mcp-clients/{key}").raise_for_status()


def timeouts_of(key):
    """Return the milliseconds for a server. One that is silent in calls has time enough to be listed before."""
    phase, _, name = key.partition("-")
    if name not in LATE:
        return {"timeout": 30_000, "connectTimeout": 30_000}
    return {"timeout": 5_000, "connectTimeout": 30_000 if phase == "call" else 2_000}


def bodies(cms, keys):
    return [cms.get(f"/api/stored/mcp-clients/{key}").json() for key in keys]


def is_listed(body):
    return body["listedAt"] is not None or bool(body["listError"])


def test_clients_get_a_reason_from_hostile_servers_and_others_are_served_meanwhile(served: Served, servers):
    is_over = False

    def attack(account, key):
        with served.client(served.keys[account]) as client:
            return client.post(f"/api/mcp/{key}/tools/echo/execute", json={"data": {}})

    def use_honest_one():
        seconds = []
        while not is_over:
            started = time.monotonic()
            assert attack("publisher", "call-honest").json() == {"result": "honest"}
            seconds.append(time.monotonic() - started)
        return seconds

    calls = [*itertools.product(("root", "editor"), [key for key in servers if key.startswith("call")])]
    with ThreadPoolExecutor(5) as pool:
        honest = pool.submit(use_honest_one)
        answered = dict(zip(calls, pool.map(lambda call: attack(*call), calls), strict=True))
        is_over = True
        seconds = honest.result()

    with served.client(served.keys["root"]) as cms:
        errors = [body["listError"] for body in bodies(cms, servers) if body["listError"]]
    failures = {call: answer.json()["error"] for call, answer in answered.items() if answer.status_code == 424}
    assert {call: answer.text for call, answer in answered.items() if answer.status_code not in (200, 424)} == {}
    assert len(errors) == len(ATTACKS) - 1  # all lists but the honest one
    assert [text for text in [*errors, *failures.values()] if not text or "cannot be reached" in text] == []
    assert max(seconds) < PLENTY
