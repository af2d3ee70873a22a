"""Switching an MCP server off: every process follows within a second."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.served import wait_until

CACHE_SECONDS = 1.0  # of the table of servers in each process


@pytest.fixture
def root(served):
    headers = {"Authorization": f"Bearer {served.keys['root']}"}
    with httpx.Client(base_url=f"{served.base_url}/api", headers=headers, timeout=60) as client:
        yield client


def test_every_process_follows_within_a_second(served, root, shop_url):
    """Each process caches the table of servers, so a call that begins a second later must see the change."""
    key = f"shop-{uuid.uuid4().hex[:8]}"
    tool = f"{key}_stock_level"
    client = {"id": key, "name": "Shop", "servers": {key: {"type": "http", "url": shop_url}}}
    assert root.post("/stored/mcp-clients", json=client).status_code == 201
    wait_until(lambda: root.get(f"/mcp/{key}/tools").json()["tools"], 60, "the list of tools")
    agent = {"id": key, "name": "Shop", "instructions": "", "model": {"provider": "demo", "name": "echo", "delay": 0}}
    assert root.post("/stored/agents", json={**agent, "mcpClients": {key: {}}}).status_code == 201

    def uses_tool(_=None):
        """Run the agent over a connection of its own, which any process may accept."""
        started = time.monotonic()
        body = {"messages": f"{tool} please"}
        answer = httpx.post(
            f"{served.base_url}/api/agents/{key}/generate", json=body, headers=root.headers, timeout=60
        ).json()
        results = [result for step in answer["steps"] for result in step["toolResults"]]
        return started, [result["payload"]["result"] for result in results]

    with ThreadPoolExecutor(8) as threads:

        def every_call_uses_it():
            return [results for _, results in threads.map(uses_tool, range(8))] == [[12]] * 8

        wait_until(every_call_uses_it, 30, "the new server in all processes")
        assert root.patch(f"/stored/mcp-clients/{key}", json={"enabled": False}).status_code == 200
        switched = time.monotonic()
        after = [threads.submit(uses_tool)]
        while after[-1].result()[0] < switched + CACHE_SECONDS + 1:
            after.append(threads.submit(uses_tool))
        after = [one.result() for one in [*after, *(threads.submit(uses_tool) for _ in range(8))]]

    late = [results for started, results in after if started > switched + CACHE_SECONDS]
    assert len(late) > 8
    assert late == [[]] * len(late)
