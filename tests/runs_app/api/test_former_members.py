"""The own runs of users who left the team: the API shows question and answer, and nothing of the agent."""

import json

import pytest

from runs_app.models import Score
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")

QUESTION = "Use word-count and agent-helper for this"
PRIVATE = ["Follow the secret plan.", "Insider", "word-count", "toolCallId", "helper", "echo", "missing-tool", "tone"]
EVENT_STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def asker():
    return member("editor", "support")


@pytest.fixture
def run(asker):
    """Return a finished run of a user who has left the team since."""
    AgentFactory(id="helper", owner_id="support", model=DEMO)
    agent = AgentFactory(
        id="ours",
        owner_id="support",
        name="Insider",
        instructions="Follow the secret plan.",
        model=DEMO,
        tools=["word-count", "missing-tool"],
        agents=["helper"],
    )
    run = wait_for_end(start_run(agent, asker, QUESTION))
    Score.objects.create(run=run, scorer="tone", score=0.5)
    asker.memberships.all().delete()
    return run


@pytest.fixture
def caller(asker):
    return Caller(api_key(asker))


def private_words(text):
    """Return the words about the agent in a response. The question and the answer of the demo model contain some."""
    return [word for word in PRIVATE if word in text]


def stream(caller, method, path, body=None):
    """Return the chunks of a stream."""
    answer = caller.client.generic(
        method, path, json.dumps(body or {}).encode(), content_type="application/json", headers=EVENT_STREAM
    )
    lines = b"".join(answer.streaming_content).decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def test_a_run_shows_question_and_answer_without_the_agent(run, caller):
    body = caller.get(f"/api/runs/{run.pk}").body

    assert body["messages"][0]["content"][0]["text"] == QUESTION
    assert body["output"] == run.output
    assert (body["configuration"], body["warnings"], body["scores"], body["children"]) == (None, [], [], [])
    rest = {name: value for name, value in body.items() if name not in ("messages", "output")}
    assert private_words(json.dumps(rest)) == []


def test_members_see_all(run, caller, asker):
    member("viewer", "support")
    asker.memberships.create(owner_id="support", role="viewer")

    body = caller.get(f"/api/runs/{run.pk}").body

    assert body["configuration"] == run.configuration
    assert (len(body["warnings"]), len(body["scores"]), len(body["children"])) == (1, 1, 1)
    events = caller.get(f"/api/runs/{run.pk}/events").body["events"]
    assert [event["number"] for event in events] == list(run.events.values_list("number", flat=True))


def test_events_show_only_the_answer(run, caller):
    pages, after = [], 0
    while True:
        page = caller.get(f"/api/runs/{run.pk}/events?after={after}&perPage=2").body
        pages += page["events"]
        if not page["hasMore"]:
            break
        after = page["events"][-1]["number"]

    text = "".join(event["data"]["payload"]["text"] for event in pages if event["data"]["type"] == "text-delta")
    assert run.output in text
    kinds = {event["data"]["type"] for event in pages}
    assert kinds == {"start", "text-start", "text-delta", "text-end", "finish"}
    others = [event["data"] for event in pages if event["data"]["type"] != "text-delta"]
    assert private_words(json.dumps(others)) == []


@pytest.mark.parametrize("door", ["stream", "observe"])
def test_streams_show_only_the_answer(run, caller, door):
    if door == "stream":
        chunks = stream(caller, "GET", f"/api/runs/{run.pk}/stream")
    else:
        chunks = stream(caller, "POST", "/api/agents/ours/observe", {"runId": str(run.pk)})

    assert run.output in "".join(chunk["payload"]["text"] for chunk in chunks if chunk["type"] == "text-delta")
    assert private_words(json.dumps([chunk for chunk in chunks if chunk["type"] != "text-delta"])) == []
    assert [chunk["type"] for chunk in chunks][-1] == "finish"


def test_child_runs_are_not_found(run, caller):
    child = run.children.get()

    assert caller.get(f"/api/runs/{child.pk}").status_code == 404
    assert [body["id"] for body in caller.get("/api/runs?children=true").body["runs"]] == [str(run.pk)]


def test_the_reason_of_a_failure_is_not_shown(asker, caller):
    agent = AgentFactory(id="ours", owner_id="support", model={"provider": "nowhere", "name": "hidden"})
    run = wait_for_end(start_run(agent, asker, "Hello"))
    asker.memberships.all().delete()

    listed = caller.get("/api/runs").body["runs"][0]
    chunks = stream(caller, "GET", f"/api/runs/{run.pk}/stream")

    assert "nowhere" in run.error
    expected = "The run failed. Ask a member of the team for the reason."
    assert listed["error"] == caller.get(f"/api/runs/{run.pk}").body["error"] == expected
    assert chunks[-1]["payload"]["error"]["message"] == expected
    assert "nowhere" not in json.dumps(caller.get(f"/api/runs/{run.pk}/events").body)
