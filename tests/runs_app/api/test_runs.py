"""Running agents by the API: generate, stream, observe and read."""

import json

import pytest
from django.test import Client

from agentcms.openapi.document import build_document
from runs_app.events import streams
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, LONG, SLOW, chunks, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")

ASK = {"messages": "Hello there"}


@pytest.fixture
def user():
    return member("editor", username="eddie")


@pytest.fixture
def editor(user):
    return Caller(api_key(user))


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", model=DEMO)


def read_stream(caller, method, path, body=None, **headers):
    """Read a stream to its end and return its blocks."""
    content = b"" if body is None else json.dumps(body).encode()
    answer = caller.client.generic(method, path, content, content_type="application/json", headers=headers)
    assert answer.headers["Content-Type"] == "text/event-stream", answer.content
    return answer, b"".join(answer.streaming_content).decode().split("\n\n")[:-1]


def data(blocks):
    return [json.loads(block.partition("data: ")[2]) for block in blocks if block.partition("data: ")[2][:1] == "{"]


# --- generate


def test_generate_returns_the_complete_answer(editor, agent):
    answer = editor.post("/api/agents/concierge/generate", ASK)

    run = AgentRun.objects.get()
    assert answer.status_code == 200
    assert answer.body["runId"] == str(run.pk)
    assert answer.body["text"] == run.output
    assert answer.body["finishReason"] == "stop"
    assert answer.body["usage"] == answer.body["totalUsage"] == run.usage
    assert answer.body["response"]["messages"] == [
        {"role": "assistant", "content": [{"type": "text", "text": run.output}]}
    ]
    assert (answer.body["versionNumber"], answer.body["isDemo"]) == (1, True)
    assert answer.body.keys() == {*build_document()["components"]["schemas"]["Generated"]["required"]}


def test_generate_returns_the_tool_calls_of_each_step(editor):
    AgentFactory(id="concierge", model=DEMO, tools=["word-count"])

    body = editor.post("/api/agents/concierge/generate", {"messages": "Use word-count on this"}).body

    first, last = body["steps"]
    assert [call["payload"]["toolName"] for call in first["toolCalls"]] == ["word-count"]
    assert [result["payload"]["isError"] for result in first["toolResults"]] == [False]
    assert (first["finishReason"], last["finishReason"]) == ("tool-calls", "stop")
    assert body["toolCalls"] == []
    assert [message["role"] for message in body["response"]["messages"]] == ["assistant", "tool", "assistant"]


def test_a_failed_run_is_no_server_error(editor):
    AgentFactory(id="concierge", model={"provider": "nobody", "name": "nothing"})

    answer = editor.post("/api/agents/concierge/generate", ASK)

    run = AgentRun.objects.get()
    assert answer.status_code == 424
    assert answer.body == {"error": run.error, "code": "run_failed"}
    assert answer.headers["X-Run-ID"] == str(run.pk)


def test_a_draft_or_any_version_can_run(editor, agent):
    agent.edit({"name": "Two"})
    version = agent.versions.get(version_number=1)

    for query, number, target in (
        ("", 2, "live"),
        ("?status=draft", 2, "draft"),
        (f"?versionId={version.pk}", 1, "version"),
        ("?versionNumber=1", 1, "version"),
    ):
        body = editor.post(f"/api/agents/concierge/generate{query}", ASK).body
        assert (body["versionNumber"], AgentRun.objects.get(pk=body["runId"]).target) == (number, target)


def test_a_version_of_another_agent_is_not_found(editor, agent):
    other = AgentFactory(id="other")

    for query in (f"versionId={other.active_version_id}", "versionId=nonsense", "versionNumber=7"):
        answer = editor.post(f"/api/agents/concierge/generate?{query}", ASK)
        assert answer.status_code == 404
        assert answer.body["error"].startswith("Version with id")


def test_an_agent_in_code_can_run(editor):
    body = editor.post("/api/agents/proofreader/generate", ASK).body

    assert (body["agentId"], body["versionId"]) == ("proofreader", None)


def test_an_idempotency_key_returns_the_same_run(editor, agent):
    first = editor.post("/api/agents/concierge/generate", ASK, Idempotency_Key="a")
    second = editor.post("/api/agents/concierge/generate", ASK, Idempotency_Key="a")
    others = [
        editor.post("/api/agents/concierge/generate", {"messages": "Else"}, Idempotency_Key="a"),
        editor.post("/api/agents/concierge/stream", ASK, Idempotency_Key="a"),
    ]

    assert first.body == second.body
    assert AgentRun.objects.count() == 1
    assert [(other.status_code, other.body["code"]) for other in others] == [(422, "key_reused")] * 2


def test_an_idempotency_key_returns_the_same_run_after_publishing(editor, agent):
    first = editor.post("/api/agents/concierge/generate", ASK, Idempotency_Key="a")
    editor.patch("/api/stored/agents/concierge", {"instructions": "Whisper.", "autoPublish": True})
    agent.refresh_from_db()

    again = editor.post("/api/agents/concierge/generate", ASK, Idempotency_Key="a")
    named = editor.post(f"/api/agents/concierge/generate?versionId={agent.head_version_id}", ASK, Idempotency_Key="a")

    assert again.body == first.body
    assert named.status_code == 422


def test_an_idempotency_key_belongs_to_one_conversation(editor, agent):
    bodies = [{**ASK, "memory": {"thread": thread}} for thread in ("one", "two")]

    answers = [editor.post("/api/agents/concierge/generate", body, Idempotency_Key="a") for body in bodies]

    assert [answer.status_code for answer in answers] == [200, 422]


# --- stream


def test_the_stream_has_the_format_of_the_published_client(editor, agent):
    answer, blocks = read_stream(editor, "POST", "/api/agents/concierge/stream", ASK)

    run = AgentRun.objects.get()
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert answer.headers["X-Run-ID"] == str(run.pk)
    data_blocks = [block for block in blocks if not block.startswith(":")]
    assert all(block.startswith("data: ") for block in data_blocks)
    assert data_blocks[-1] == "data: [DONE]"
    assert [(chunk["type"], chunk["payload"]) for chunk in data(data_blocks)] == [
        (chunk["type"], chunk["payload"]) for chunk in chunks(run)
    ]
    assert {(chunk["runId"], chunk["from"]) for chunk in data(data_blocks)} == {(str(run.pk), "AGENT")}


def test_a_reader_that_accepts_event_streams_gets_event_ids(editor, agent):
    _, blocks = read_stream(editor, "POST", "/api/agents/concierge/stream", ASK, accept="text/event-stream")

    numbers = [int(block.partition("\n")[0][4:]) for block in blocks if block.startswith("id: ")]
    assert numbers == list(range(1, AgentRun.objects.get().last_event_number + 1))


def test_a_stream_continues_after_the_last_event_id(editor, agent, user):
    run = wait_for_end(start_run(agent, user))
    _, whole = read_stream(editor, "GET", f"/api/runs/{run.pk}/stream")

    for number in range(run.last_event_number + 1):
        _, rest = read_stream(editor, "GET", f"/api/runs/{run.pk}/stream", last_event_id=str(number))
        assert rest == [whole[0], *whole[number + 1 :]]
        assert read_stream(editor, "GET", f"/api/runs/{run.pk}/stream?after={number}")[1] == rest


def test_an_invalid_event_id_is_refused(editor, agent, user):
    run = start_run(agent, user)

    for number in ("x", "-1", "1.5", "9" * 30):
        answer = editor.get(f"/api/runs/{run.pk}/stream", last_event_id=number)
        assert (answer.status_code, answer.body["code"]) == (400, "invalid_header")


def test_stream_errors_are_json(editor, agent):
    answer = editor.post("/api/agents/nobody/stream", ASK, accept="text/event-stream")

    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/json")


def test_observe_streams_a_run_from_an_index(editor, agent, user):
    run = wait_for_end(start_run(agent, user))

    _, whole = read_stream(editor, "POST", "/api/agents/concierge/observe", {"runId": str(run.pk)})
    _, rest = read_stream(editor, "POST", "/api/agents/concierge/observe", {"runId": str(run.pk), "offset": 2})

    assert [chunk["type"] for chunk in data(whole)] == [chunk["type"] for chunk in chunks(run)]
    assert data(rest) == data(whole)[2:]
    assert editor.post("/api/agents/other/observe", {"runId": str(run.pk)}).status_code == 404
    assert editor.post("/api/agents/concierge/observe", {"runId": str(run.pk), "offset": -1}).status_code == 400


def test_head_of_a_stream_responds_at_once(editor, user):
    run = start_run(AgentFactory(model=SLOW), user, LONG)

    pages = Client()
    pages.force_login(user)
    answers = [
        editor.client.head(f"/api/runs/{run.pk}/stream"),
        editor.client.head("/api/background-tasks/stream"),
        pages.head(f"/runs/{run.pk}/stream"),
    ]

    for answer in answers:
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/event-stream")
        assert answer.headers["Cache-Control"] == "no-cache, no-transform"
        assert not answer.streaming
    assert editor.client.head(f"/api/runs/{run.pk}x/stream").status_code == 404


def test_the_number_of_open_streams_is_limited(editor, agent, user, settings):
    settings.RUN_STREAMS = 1
    path = f"/api/runs/{wait_for_end(start_run(agent, user)).pk}/stream"
    first = editor.client.get(path)

    second = editor.get(path)

    assert (second.status_code, second.body["code"], second.headers["Retry-After"]) == (503, "too_many_streams", "2")
    first.close()
    assert read_stream(editor, "GET", path)[1][-1] == "data: [DONE]"
    assert read_stream(editor, "GET", path)[1][-1] == "data: [DONE]"


def test_the_number_of_open_streams_per_user_is_limited(editor, agent, user, settings):
    settings.RUN_STREAMS_PER_USER = 1
    path = f"/api/runs/{wait_for_end(start_run(agent, user)).pk}/stream"
    other = Caller(api_key(member("publisher")))
    first = editor.client.get(path)

    second = editor.get(path)

    assert (second.status_code, second.body["code"], second.headers["Retry-After"]) == (429, "too_many_streams", "2")
    assert read_stream(other, "GET", path)[1][-1] == "data: [DONE]"
    first.close()
    assert read_stream(editor, "GET", path)[1][-1] == "data: [DONE]"


@pytest.mark.parametrize(("setting", "status"), [("RUN_STREAMS", 503), ("RUN_STREAMS_PER_USER", 429)])
@pytest.mark.parametrize("act", ["generate", "stream"])
def test_no_run_starts_without_a_free_stream(act, setting, status, editor, agent, user, settings):
    setattr(settings, setting, 1)
    with streams.StreamSlot(user):
        refused = editor.post(f"/api/agents/concierge/{act}", ASK)

    assert (refused.status_code, AgentRun.objects.count()) == (status, 0)
    assert editor.post(f"/api/agents/concierge/{act}", {}).status_code == 400  # the place is released
    assert editor.post("/api/agents/concierge/generate", ASK).status_code == 200


# --- Runs


def test_runs_can_be_listed_and_read(editor, agent, user):
    first, second = (
        wait_for_end(start_run(agent, user)),
        wait_for_end(start_run(AgentFactory(id="other", model=DEMO), user)),
    )

    listed = editor.get("/api/runs").body
    assert [run["id"] for run in listed["runs"]] == [str(second.pk), str(first.pk)]
    assert (listed["total"], listed["hasMore"]) == (2, False)
    assert [run["id"] for run in editor.get("/api/runs?agentId=concierge").body["runs"]] == [str(first.pk)]
    assert editor.get("/api/runs?status=failed").body["total"] == 0
    assert editor.get("/api/runs?perPage=1&page=1").body["runs"][0]["id"] == str(first.pk)
    assert editor.get("/api/runs?status=nonsense").status_code == 400

    run = editor.get(f"/api/runs/{first.pk}").body
    assert run["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hello there"}]}]
    assert (run["output"], run["status"], run["target"]) == (first.output, "succeeded", "live")
    assert run["configuration"] == first.configuration


def test_the_events_of_a_run_are_paged(editor, agent, user):
    run = wait_for_end(start_run(agent, user))

    page = editor.get(f"/api/runs/{run.pk}/events?perPage=3").body
    rest = editor.get(f"/api/runs/{run.pk}/events?after=3").body

    assert ([event["number"] for event in page["events"]], page["hasMore"]) == ([1, 2, 3], True)
    assert (rest["events"][0]["number"], rest["hasMore"]) == (4, False)
    assert [event["data"] for event in page["events"] + rest["events"]] == chunks(run)


# --- Agents


def test_runnable_agents_are_listed_by_id(editor):
    AgentFactory(id="concierge", model=DEMO, tools=["word-count", "missing"], agents=["proofreader"])

    listed = editor.get("/api/agents").body

    assert {"concierge", "proofreader"} <= set(listed)
    agent = listed["concierge"]
    assert agent == editor.get("/api/agents/concierge").body
    assert (agent["provider"], agent["modelId"], agent["source"]) == ("demo", "echo", "stored")
    assert list(agent["tools"]) == ["word-count"]
    schema = json.loads(agent["tools"]["word-count"]["inputSchema"])["json"]  # a text in the form of superjson
    assert "text" in schema["properties"]
    assert agent["agents"] == {"proofreader": {"id": "proofreader", "name": "Proofreader"}}
    assert "inputSchema" not in editor.get("/api/agents?partial=true").body["concierge"]["tools"]["word-count"]


def test_an_agent_is_returned_in_the_requested_version(editor, agent):
    agent.edit({"name": "Two"})

    assert editor.get("/api/agents/concierge").body["name"] == "Two"
    assert editor.get("/api/agents/concierge?versionNumber=1").body["name"] == "Concierge"


def test_providers_name_the_missing_setting(editor):
    providers = {provider["id"]: provider for provider in editor.get("/api/agents/providers").body["providers"]}

    assert providers["demo"]["connected"]
    assert (providers["openai"]["connected"], providers["openai"]["envVar"]) == (False, "OPENAI_API_KEY")
