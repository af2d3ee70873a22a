"""A run from its start to its end, through the engine of this process."""

import pytest

from runs_app import starting
from runs_app.models import AgentRun
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory, member
from tests.runs_app.conftest import ended

pytestmark = pytest.mark.usefixtures("engine_at_rest")

DEMO = {"provider": "demo", "name": "echo", "delay": 0}


@pytest.fixture
def editor():
    return member("editor")


def run(agent, user, text="Hello there", **said):
    return ended(starting.start(stored_agents.get(agent.pk, user=user), user=user, messages=text, **said))


def kinds(run):
    return [data["type"] for data in run.events.values_list("data", flat=True)]


def test_an_answer_is_kept_with_everything_about_it(editor):
    agent = AgentFactory(model=DEMO)

    done = run(agent, editor)

    assert (done.status, done.finish_reason, done.error) == ("succeeded", "stop", "")
    assert done.output.startswith("I am the demo model 'echo'. You said: Hello there")
    assert (done.agent, done.version_id, done.version_number) == (agent, agent.active_version_id, 1)
    assert done.configuration == agent.active_version.snapshot
    assert (done.requested_by, done.requested_by_name) == (editor, editor.username)
    assert done.usage["totalTokens"] == done.usage["inputTokens"] + done.usage["outputTokens"] > 0
    assert done.is_demo
    assert done.started_at <= done.first_text_at <= done.finished_at
    assert (done.holder, done.lease_until) == ("", None)


def test_the_events_are_numbered_and_tell_the_answer(editor):
    done = run(AgentFactory(model=DEMO), editor)

    events = list(done.events.all())

    assert [event.number for event in events] == list(range(1, done.last_event_number + 1))
    said = kinds(done)
    assert [kind for kind in said if kind != "text-delta"] == [
        "start",
        "step-start",
        "text-start",
        "text-end",
        "step-finish",
        "finish",
    ]
    told = "".join(event.data["payload"]["text"] for event in events if event.data["type"] == "text-delta")
    assert told == done.output
    assert {event.type for event in events} == {"chunk", "step-start", "step-finish", "finish"}


def test_a_tool_is_called_and_its_result_told(editor):
    done = run(AgentFactory(model=DEMO, tools=["word-count"]), editor, "Use word-count on this")

    called = done.events.get(type="tool-call").data["payload"]
    came = done.events.get(type="tool-result").data["payload"]
    assert (called["toolName"], called["toolCallId"]) == ("word-count", came["toolCallId"])
    assert (came["result"], came["isError"]) == (2, False)
    assert [
        data["payload"]["stepResult"] for data in done.events.filter(type="step-finish").values_list("data", flat=True)
    ] == [
        {"reason": "tool-calls", "isContinued": True, "warnings": []},
        {"reason": "stop", "isContinued": False, "warnings": []},
    ]


def test_a_run_keeps_the_version_it_began_with(editor):
    agent = AgentFactory(model={**DEMO, "delay": 0.05})
    begun = starting.start(stored_agents.get(agent.pk), user=editor, messages="one two three four five six")
    agent.name = "Renamed"
    agent.save()

    done = ended(begun)

    assert (done.version_number, done.configuration["name"]) == (1, "Concierge")
    assert agent.active_version.version_number == 2


def test_what_cannot_be_built_fails_with_a_reason(editor):
    done = run(AgentFactory(model={"provider": "nobody", "name": "nothing"}), editor)

    assert (done.status, done.finish_reason) == ("failed", "error")
    assert "nobody" in done.error
    assert kinds(done) == ["error"]
    assert AgentRun.objects.open().count() == 0
