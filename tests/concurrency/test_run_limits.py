"""The limit of unfinished runs of a user, over HTTP with two web processes."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.served_accounts import serving_with_accounts

SLOW = {"provider": "demo", "name": "echo", "delay": 0.05}
LONG = "word " * 2000  # takes a hundred seconds to answer


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    with serving_with_accounts(tmp_path_factory.mktemp("limits") / "var", WEB_WORKERS="2", RUNS_PER_USER="5") as copy:
        yield copy


def test_a_user_who_starts_many_agents_at_once_keeps_to_the_limit(copy, is_drill):
    agents = [f"agent-{number}" for number in range(60 if is_drill else 20)]
    with copy.client(copy.keys["publisher"]) as client, ThreadPoolExecutor(len(agents)) as pool:
        for agent in agents:
            body = {"id": agent, "name": agent, "instructions": "Answer.", "model": SLOW}
            assert client.post("/api/stored/agents", json=body).status_code == 201

        def start(agent):
            with client.stream("POST", f"/api/agents/{agent}/stream", json={"messages": LONG}) as answer:
                return answer.status_code

        statuses = Counter(pool.map(start, agents))

        assert statuses == {200: 5, 429: len(agents) - 5}
        running = client.get("/api/runs?perPage=100").json()
        assert running["total"] == 5
        for run in running["runs"]:
            client.post(f"/api/runs/{run['id']}/cancel")
