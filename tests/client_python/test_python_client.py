"""The Python client with a running copy and with scripted responses."""

import asyncio
import inspect
import re
import time
from pathlib import Path

import httpx
import pytest
from agentcms_client import CALLS, ApiError, AsyncClient, Client, Stale

from tests.served import Served

HERE = Path(__file__).parents[2] / "clients" / "python"
EXAMPLES = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.S)


@pytest.mark.parametrize("example", EXAMPLES, ids=["waiting", "not waiting", "conversations", "experiments"])
def test_the_examples_of_the_readme_work(served: Served, example: str):
    # They list all agents of an owner, and all data of the person "bob". No other test creates such ones.
    exec(compile(example, "README.md", "exec"), {"address": served.base_url, "key": served.keys["python"]})


def test_the_examples_create_no_agent_that_the_demo_data_has():
    demo_ids = {path.stem for path in (HERE.parents[1] / "versions_app" / "demo" / "agents").glob("*.toml")}
    created = set(re.findall(r'create_agent\(\s*f?"([^"{]+)', "".join(EXAMPLES)))

    assert created == {"bellhop", "courier-", "examiner", "valet"}
    assert [demo_id for demo_id in demo_ids if demo_id.startswith(tuple(created))] == []


# --- Answers that go wrong


class ScriptedTransport:
    """A transport that returns scripted responses and records the requests."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def pauses(monkeypatch):
    """Record the pauses of the client without waiting."""
    taken = []

    async def nap(seconds):
        taken.append(seconds)

    monkeypatch.setattr(time, "sleep", taken.append)
    monkeypatch.setattr(asyncio, "sleep", nap)
    return taken


class BlockingClient:
    """The asynchronous client behind synchronous methods, so that one test covers both clients."""

    def __init__(self, *arguments, **options):
        self.cms = AsyncClient(*arguments, **options)

    def __getattr__(self, name):
        attribute = getattr(self.cms, name)

        def call(*arguments, **options):
            answer = attribute(*arguments, **options)
            return asyncio.run(collect(answer) if hasattr(answer, "__aiter__") else answer)

        return call


async def collect(answers):
    return [item async for item in answers]


@pytest.fixture(params=[Client, BlockingClient], ids=["waiting", "not waiting"])
def client(request, pauses):
    """Return a function that creates a client with scripted responses."""

    def make(*answers):
        script = ScriptedTransport(*answers)
        return request.param("http://cms", "key", transport=httpx.MockTransport(script)), script

    return make


def answer(status=200, body=None, **headers):
    return httpx.Response(
        status, json=body or {}, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def test_both_clients_have_the_same_methods_with_the_same_parameters():
    def methods(kind):
        return {
            name: str(inspect.signature(method)).partition(" -> ")[0]
            for name, method in vars(kind).items()
            if not name.startswith("__") and callable(method)
        }

    assert methods(Client) == methods(AsyncClient)


def test_all_versions_and_agents_are_read_page_by_page(client):
    cms, script = client(
        answer(200, {"versions": [{"versionNumber": 2}], "hasMore": True}),
        answer(200, {"versions": [{"versionNumber": 1}], "hasMore": False}),
        answer(200, {"agents": [{"id": "a"}], "nextCursor": "next"}),
        answer(200, {"agents": [{"id": "b"}], "nextCursor": None}),
    )

    assert [version["versionNumber"] for version in cms.versions("a")] == [2, 1]
    assert [agent["id"] for agent in cms.agents()] == ["a", "b"]
    assert [request.url.params.get("cursor", request.url.params.get("page")) for request in script.requests] == [
        "0",
        "1",
        "",
        "next",
    ]


def test_a_lost_response_is_retried_with_the_same_idempotency_key(client):
    cms, script = client(httpx.ReadError("lost"), answer(201, {"id": "a"}))

    assert cms.create_agent("a")["id"] == "a"
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1


def test_retry_after_is_respected(client, pauses):
    cms, _ = client(answer(429, Retry_After="7"), answer(503, Retry_After="2"), answer(200, {"id": "a"}))

    cms.get_agent("a")

    assert pauses == [7, 2]


def test_a_refused_request_is_not_retried(client):
    issues = [{"field": "name", "message": "No."}]
    cms, script = client(answer(400, {"error": "Invalid request body", "code": "invalid_body", "issues": issues}))

    with pytest.raises(ApiError) as refused:
        cms.update_agent("a", name="")

    assert (refused.value.status, refused.value.code, refused.value.issues) == (400, "invalid_body", issues)
    assert len(script.requests) == 1


def test_a_retried_delete_that_gets_404_has_succeeded(client):
    cms, _ = client(httpx.ReadError("lost"), answer(404, {"error": "gone"}))

    assert cms.send(CALLS.delete_agent("a"))["success"] is True


def test_the_number_of_retries_is_limited(client):
    cms, script = client(*(answer(503) for _ in range(9)))

    with pytest.raises(ApiError):
        cms.get_agent("a")

    assert len(script.requests) == 5


def test_a_conflicting_edit_reads_the_agent_again(client):
    cms, script = client(
        answer(200, {"n": 1}, ETag='"1"'), answer(412), answer(200, {"n": 2}, ETag='"2"'), answer(200, {"id": "a"})
    )

    cms.edit_agent("a", lambda agent: {"metadata": {"n": agent["n"]}})

    assert script.requests[-1].headers["If-Match"] == '"2"'
    assert b'"n":2' in script.requests[-1].content.replace(b" ", b"")


def test_a_stale_update_raises(client):
    cms, _ = client(answer(412, {"error": "Ann saved version 2."}))

    with pytest.raises(Stale, match="Ann saved"):
        cms.update_agent("a", '"1"', name="x")


def test_a_request_in_progress_is_retried_with_its_key(client, pauses):
    cms, script = client(answer(409, {"code": "in_progress"}, Retry_After="1"), answer(201, {"id": "a"}))

    cms.create_agent("a")

    assert pauses == [1]
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1


def test_a_taken_id_is_not_retried(client):
    cms, script = client(answer(409, {"error": "Agent with id a already exists", "code": "already_exists"}))

    with pytest.raises(ApiError, match="already exists"):
        cms.create_agent("a")

    assert len(script.requests) == 1
