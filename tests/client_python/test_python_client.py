"""The Python client with a running copy and with scripted responses."""

import asyncio
import inspect
import pickle
import re
import time
from email.utils import formatdate
from pathlib import Path

import agentcms_client
import httpx
import pytest
from agentcms_client import CALLS, ApiError, AsyncClient, Call, Client, Stale
from agentcms_client.retries import WaitPauses

from agentcms.openapi.document import build_document
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


@pytest.mark.parametrize(
    "kind", ["Agent", "Approval", "Comparison", "DeletedAgent", "Job", "Run", "Version", "Answer"]
)
def test_a_typed_dictionary_has_the_fields_of_the_api_document(kind):
    parts = build_document()["components"]["schemas"]
    schema = parts[{"Answer": "Generated"}.get(kind, kind)]
    bases = [parts[part["$ref"].rpartition("/")[2]] if "$ref" in part else part for part in schema.get("allOf", [])]
    names = {name for part in [schema, *bases] for name in part.get("properties", {})}
    only_of_writes = {"warnings"} if kind == "Version" else set()

    assert set(getattr(agentcms_client, kind).__annotations__) == names - only_of_writes


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


def test_an_edit_whose_response_was_lost_is_not_made_twice(client):
    saved = {"id": "a", "tools": ["calculator", "word-count"], "name": "A"}
    cms, script = client(
        answer(200, {**saved, "tools": ["calculator"]}, ETag='"1"'),
        httpx.ReadError("lost"),
        answer(412),
        answer(200, saved),
    )

    agent = cms.edit_agent("a", lambda agent: {"tools": [*agent["tools"], "word-count"]}, changeMessage="Count words")

    assert agent == saved
    assert [request.method for request in script.requests] == ["GET", "PATCH", "PATCH", "GET"]


def test_an_edit_that_saves_a_draft_begins_with_the_draft(client):
    cms, script = client(answer(200, {"tools": ["calculator"]}, ETag='"1"'), answer(200, {"id": "a"}))

    cms.edit_agent("a", lambda agent: {"tools": [*agent["tools"], "word-count"]}, autoPublish=False)

    assert script.requests[0].url.params["status"] == "draft"


@pytest.mark.parametrize(("before", "may_be_own"), [([], False), ([httpx.ReadError("lost")], True)])
def test_a_stale_update_says_whether_the_change_may_be_its_own(client, before, may_be_own):
    cms, _ = client(*before, answer(412, {"error": "You saved version 2."}))

    with pytest.raises(Stale) as stale:
        cms.update_agent("a", '"1"', name="x")

    assert stale.value.may_be_own is may_be_own


def unrepeatable():
    return Call("POST", "/api/mcp/shop/tools/reserve/execute", is_repeatable=False)


def test_a_call_that_is_not_repeatable_is_not_repeated_if_it_may_have_been_executed(client):
    cms, script = client(httpx.ReadError("lost"), answer(502), answer(503, {"code": "unavailable"}), answer(504))

    with pytest.raises(httpx.ReadError):
        cms.send(unrepeatable())
    for _ in range(3):
        with pytest.raises(ApiError):
            cms.send(unrepeatable())

    assert len(script.requests) == 4


def test_a_call_that_is_not_repeatable_is_repeated_if_it_was_not_executed(client):
    full = answer(503, {"code": "too_many_streams"})
    cms, script = client(httpx.ConnectError("refused"), full, answer(429), answer(200, {"result": 1}))

    assert cms.send(unrepeatable()) == {"result": 1}
    assert len(script.requests) == 4


def test_calls_of_tools_copies_and_stops_are_repeated_with_their_key(client):
    calls = [
        Call("POST", "/api/mcp/shop/tools/reserve/execute"),
        CALLS.clone_thread("trip"),
        CALLS.delete_messages(["m"]),
        CALLS.abort_thread("a", "trip"),
    ]
    cms, script = client(*(reply for _ in calls for reply in (httpx.ReadError("lost"), answer(200, {}))))

    for call in calls:
        cms.send(call)

    keys = [request.headers["Idempotency-Key"] for request in script.requests]
    assert keys[::2] == keys[1::2]


def test_messages_and_threads_get_an_id_by_which_a_repeat_is_recognized(client):
    stored = {"threadId": "trip", "role": "user", "content": "Hi", "id": "m1"}
    calls = [
        CALLS.send_message("a", [{"type": "text", "text": "Hi"}], threadId="trip"),
        CALLS.queue_message("a", {"contents": "Hi", "id": "m2"}, threadId="trip"),
        CALLS.send_signal("a", {"type": "ping", "contents": ""}, threadId="trip"),
        CALLS.save_messages([stored, {**stored, "id": None}]),
        CALLS.create_thread("a", resourceId="ann"),
        CALLS.network.create_thread("a", threadId="trip"),
    ]
    cms, script = client(*(reply for _ in calls for reply in (httpx.ReadError("lost"), answer(200, {}))))

    for call in calls:
        cms.send(call)

    bodies = [request.content for request in script.requests]
    assert bodies[::2] == bodies[1::2]
    assert calls[0].body["message"]["contents"] == [{"type": "text", "text": "Hi"}]
    assert calls[1].body["message"] == {"contents": "Hi", "id": "m2"}
    ids = [calls[0].body["message"]["id"], calls[2].body["signal"]["id"], calls[4].body["threadId"]]
    first, second = calls[3].body["messages"]
    assert first == stored
    assert len({*ids, second["id"]}) == 4
    assert calls[5].body["threadId"] == "trip"


def test_a_404_is_no_success_of_a_delete_that_was_only_refused_before(client):
    cms, _ = client(answer(429, Retry_After="0"), answer(404, {"error": "Stored agent with id a not found"}))

    with pytest.raises(ApiError, match="not found"):
        cms.send(CALLS.delete_agent("a"))


@pytest.mark.parametrize(
    ("content", "message"),
    [(b'"Bad"', '"Bad"'), (b"[]", "[]"), (b"null", "null"), (b"<html>", "<html>"), (b"", "HTTP 431")],
)
def test_an_error_that_the_api_did_not_write_is_an_api_error(client, content, message):
    cms, _ = client(httpx.Response(431, content=content))

    with pytest.raises(ApiError) as error:
        cms.get_agent("a")

    assert (error.value.status, error.value.code, error.value.issues) == (431, "", [])
    assert str(error.value) == message


def test_a_redirect_is_an_error_that_names_the_right_address(client):
    cms, _ = client(httpx.Response(301, headers={"Location": "https://cms.example.org/api/stored/agents/a"}))

    with pytest.raises(ApiError, match="redirects to https://cms"):
        cms.get_agent("a")


def test_an_error_has_all_members_of_the_response_and_can_be_pickled(client):
    body = {"error": "The run waits for several calls.", "code": "several_calls", "toolCallIds": ["c1", "c2"]}
    cms, _ = client(answer(409, body), answer(412, {"error": "Ann saved version 2.", "touching": ["name"]}))

    with pytest.raises(ApiError) as several:
        cms.send(Call("POST", "/api/agents/a/approve-tool-call", body={"runId": "r"}))
    with pytest.raises(Stale) as stale:
        cms.update_agent("a", '"1"', name="x")

    assert several.value.body == body
    copy = pickle.loads(pickle.dumps(stale.value))
    assert (type(copy), str(copy), copy.body["touching"]) == (Stale, "Ann saved version 2.", ["name"])


def test_retry_after_may_be_a_time(client, pauses):
    cms, _ = client(
        answer(503, Retry_After=formatdate(time.time() + 10, usegmt=True)), answer(503, Retry_After="soon"), answer()
    )

    cms.get_agent("a")

    assert 8 < pauses[0] <= 10
    assert pauses[1] < 1


def test_an_invalid_address_is_not_tried_again(client):
    cms, script = client(httpx.UnsupportedProtocol("Request URL is missing a protocol."))

    with pytest.raises(httpx.UnsupportedProtocol):
        cms.get_agent("a")

    assert len(script.requests) == 1


def test_a_client_waits_longer_for_a_response_than_for_a_connection():
    with Client("http://cms", "key") as cms, Client("http://cms", "key", timeout=2) as impatient:
        default, own = cms.http.timeout, impatient.http.timeout
    run = CALLS.generate("a", "Hello").request_kwargs()["timeout"]

    assert (default.connect, default.read, own.read) == (10, 30, 2)
    assert (run.connect, run.read) == (10, 600)


def test_the_attempts_outlast_the_restart_of_a_server(client, pauses):
    cms, _ = client(*[httpx.ConnectError("refused")] * 4, answer())

    cms.get_agent("a")

    assert sum(pauses) > 3


def test_the_last_pause_ends_with_the_time_limit():
    waiting = WaitPauses(0.5)
    waiting.pause = 5

    assert waiting.next() <= 0.5


def test_ids_cannot_lead_to_another_route():
    hostile = "../x?y#z"
    calls = [
        CALLS.get_run,
        CALLS.cancel_run,
        CALLS.get_approval,
        CALLS.get_job,
        CALLS.delete_job,
        CALLS.purge_deleted_agent,
    ]

    assert ["..%2Fx%3Fy%23z" in call(hostile).path for call in calls] == [True] * len(calls)


def test_a_version_that_is_new_meanwhile_repeats_no_other(client):
    pages = ([5, 4], True), ([4, 3], True), ([2], False)
    cms, _ = client(
        *(answer(200, {"versions": [{"versionNumber": n} for n in page], "hasMore": more}) for page, more in pages)
    )

    assert [version["versionNumber"] for version in cms.versions("a")] == [5, 4, 3, 2]


def test_calls_that_are_decided_meanwhile_hide_no_others():
    waiting = []

    def list_page(request):
        page, size = (int(request.url.params[name]) for name in ("page", "perPage"))
        end = (page + 1) * size
        return answer(
            200, {"approvals": [{"id": key} for key in waiting[end - size : end]], "hasMore": end < len(waiting)}
        )

    async def decide_all():
        async with AsyncClient("http://cms", "key", transport=httpx.MockTransport(list_page)) as cms:
            async for approval in cms.approvals(perPage=2):
                waiting.remove(approval["id"])

    waiting += "abcde"
    with Client("http://cms", "key", transport=httpx.MockTransport(list_page)) as cms:
        for approval in cms.approvals(perPage=2):
            waiting.remove(approval["id"])
    assert waiting == []
    waiting += "abcde"
    asyncio.run(decide_all())
    assert waiting == []
