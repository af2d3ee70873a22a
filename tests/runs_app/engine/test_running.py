"""Runs in the engine of this process."""

import pytest

from runs_app.engine import engine, missing_ends
from runs_app.engine.engine import get_engine
from runs_app.engine.execution import execute
from runs_app.models import AgentRun
from tests.factories import AgentFactory, member
from tests.runs import DEMO, SLOW, chunks, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def editor():
    return member("editor")


def test_a_run_stores_answer_usage_and_times(editor):
    agent = AgentFactory(model=DEMO)

    done = wait_for_end(start_run(agent, editor))

    assert (done.status, done.finish_reason, done.error) == ("succeeded", "stop", "")
    assert "Hello there" in done.output
    assert (done.agent, done.version_id, done.version_number) == (agent, agent.active_version_id, 1)
    assert done.configuration == agent.active_version.snapshot
    assert (done.requested_by, done.requested_by_name) == (editor, editor.username)
    assert done.usage["totalTokens"] == done.usage["inputTokens"] + done.usage["outputTokens"] > 0
    assert done.is_demo
    assert done.started_at <= done.first_text_at <= done.finished_at
    assert (done.holder, done.lease_until) == ("", None)


def test_the_events_are_numbered_and_contain_the_answer(editor):
    done = wait_for_end(start_run(AgentFactory(model=DEMO), editor))

    events = list(done.events.all())

    assert [event.number for event in events] == list(range(1, done.last_event_number + 1))
    assert "".join(data["payload"]["text"] for data in chunks(done, "text-delta")) == done.output
    assert [data["type"] for data in chunks(done) if data["type"] != "text-delta"] == [
        "start",
        "step-start",
        "text-start",
        "text-end",
        "step-finish",
        "finish",
    ]
    assert {event.type for event in events} == {"chunk", "step-start", "step-finish", "finish"}


def test_text_deltas_are_combined_into_one_event(editor):
    done = wait_for_end(start_run(AgentFactory(model=DEMO), editor, "word " * 500))

    assert len(done.output.split()) > 500
    assert len(chunks(done, "text-delta")) < 100


def test_a_tool_call_and_its_result_are_events(editor):
    done = wait_for_end(start_run(AgentFactory(model=DEMO, tools=["word-count"]), editor, "Use word-count on this"))

    called = done.events.get(type="tool-call").data["payload"]
    came = done.events.get(type="tool-result").data["payload"]
    assert (called["toolName"], called["toolCallId"]) == ("word-count", came["toolCallId"])
    assert (type(came["result"]), came["isError"]) == (int, False)
    assert [data["payload"]["stepResult"] for data in chunks(done, "step-finish")] == [
        {"reason": "tool-calls", "isContinued": True, "warnings": []},
        {"reason": "stop", "isContinued": False, "warnings": []},
    ]


def test_a_run_uses_the_version_at_its_start(editor):
    agent = AgentFactory(model=SLOW)
    begun = start_run(agent, editor, "one two three four five six")
    agent.name = "Renamed"
    agent.save()

    done = wait_for_end(begun)

    agent.refresh_from_db()
    assert agent.active_version.version_number == 2
    assert (done.version_number, done.configuration["name"]) == (1, "Concierge")


def test_an_agent_that_cannot_be_built_fails_with_a_reason(editor, caplog):
    done = wait_for_end(start_run(AgentFactory(model={"provider": "nobody", "name": "nothing"}), editor))

    assert (done.status, done.finish_reason) == ("failed", "error")
    assert "nobody" in done.error
    assert [data["type"] for data in chunks(done)] == ["error"]
    assert AgentRun.objects.unfinished().count() == 0
    assert [record.message for record in caplog.records if "failed" in record.message] == [
        f"Run {done.pk} failed: {done.error}"
    ]


def test_a_run_is_stopped_at_its_timeout(editor, settings):
    settings.RUN_TIMEOUT = 3

    done = wait_for_end(start_run(AgentFactory(model={**SLOW, "delay": 2}), editor, "one two three"))

    assert (done.status, done.error) == ("failed", "The run took longer than 3 seconds and was stopped.")
    assert done.output.startswith("I ")


def test_a_run_is_stopped_at_its_token_limit(editor, settings):
    settings.RUN_MAX_TOKENS = 10

    done = wait_for_end(start_run(AgentFactory(model=DEMO), editor))

    assert done.status == "failed"
    assert done.error.startswith("The run reached its limit of tokens")


def test_code_can_start_a_run_without_a_user(db):
    done = wait_for_end(start_run(AgentFactory(model=DEMO, owner_id="them"), None))

    assert (done.status, done.requested_by, done.owner_id) == ("succeeded", None, "them")


def test_a_run_that_cannot_be_started_fails(editor, monkeypatch):
    monkeypatch.setattr(get_engine(), "execute_run", None)
    monkeypatch.setattr(engine, "EXECUTE_MODULE", "runs_app.engine.nothing")

    done = wait_for_end(start_run(AgentFactory(model=DEMO), editor))

    assert (done.status, done.error) == ("failed", engine.UNSTARTED_MESSAGE)
    assert chunks(done)[-1]["type"] == "error"


def test_a_run_whose_failure_cannot_be_recorded_ends(editor, monkeypatch, caplog):
    def fail(*args):
        raise ValueError("no words")

    monkeypatch.setattr(execute, "record_failure", fail)

    done = wait_for_end(start_run(AgentFactory(model={"provider": "nobody", "name": "nothing"}), editor))

    assert (done.status, done.error) == ("failed", missing_ends.BROKEN_MESSAGE)
    assert f"Run {done.pk} ended with an unexpected error." in caplog.messages
