"""Cancelled runs and runs of dead processes."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from agentcms.errors import Unavailable
from runs_app import tasks
from runs_app.engine import missing_ends, run_ends
from runs_app.engine.engine import Engine, get_engine
from runs_app.engine.start import rows
from runs_app.events.notifications import notifier
from runs_app.models import AgentRun
from runs_app.models.run import LEASE_DURATION
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, LONG, SLOW, chunks, start_run, wait_for_end, wait_for_text
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", model=SLOW)


def lost_run(agent, user, **columns):
    """Return a run with an expired lease."""
    run = AgentRun(agent=agent, agent_key=agent.pk, requested_by=user, configuration={}, input={"messages": []})
    values = {"status": "running", "holder": "elsewhere:1", "lease_until": timezone.now() - timedelta(seconds=1)}
    for name, value in {**values, **columns}.items():
        setattr(run, name, value)
    run.save()
    return run


def test_a_cancelled_run_keeps_its_output(agent, editor):
    run = wait_for_text(start_run(agent, editor, LONG))

    answer = Caller(api_key(editor)).post(f"/api/runs/{run.pk}/cancel")

    assert answer.status_code == 200
    done = wait_for_end(run)
    assert (done.status, done.error, done.finish_reason) == ("cancelled", "", "")
    assert done.output == "".join(chunk["payload"]["text"] for chunk in chunks(done, "text-delta")) != ""
    assert chunks(done)[-1]["type"] == "abort"
    assert done.events.last().type == "finish"


def test_generate_reports_that_its_run_was_cancelled(agent, editor):
    caller, path = Caller(api_key(editor)), "/api/agents/concierge/generate"
    run_ends.cancel_run(start_run(agent, editor, LONG, key="a", route=path).pk)

    answer = caller.post(path, {"messages": LONG}, Idempotency_Key="a")

    assert (answer.status_code, answer.body["code"]) == (409, "run_cancelled")


@pytest.fixture(params=[False, True], ids=["usual", "durable"])
def cancelled_at_once(request, settings, monkeypatch):
    """Cancel each run on the event loop before its task has begun."""
    settings.RUN_DURABLE = request.param
    run_task = Engine.run_task

    def run_and_cancel(self, run_id, execution, context=None):
        task = run_task(self, run_id, execution, context)
        self._cancel(run_id)
        return task

    monkeypatch.setattr(Engine, "run_task", run_and_cancel)


@pytest.mark.usefixtures("cancelled_at_once")
def test_a_run_that_is_cancelled_before_it_begins_ends(agent, editor):
    run = wait_for_end(start_run(agent, editor, LONG))

    assert run.status == "cancelled"
    assert [chunk["type"] for chunk in chunks(run)] == ["abort"]


@pytest.mark.usefixtures("cancelled_at_once")
def test_a_process_that_stops_gives_up_a_run_that_has_not_begun(agent, editor, monkeypatch, settings):
    engine = get_engine()
    monkeypatch.setattr(engine, "is_stopping", False)
    end_unbegun = missing_ends.end_unbegun

    def stop_and_end(*arguments, **flags):
        engine.is_stopping = True
        end_unbegun(*arguments, **{**flags, "is_stopping": True})

    monkeypatch.setattr(missing_ends, "end_unbegun", stop_and_end)
    run = start_run(agent, editor, LONG)
    assert engine.writer.wait_until_flushed(30)
    run.refresh_from_db()

    assert (run.status, run.error) == (("queued", "") if settings.RUN_DURABLE else ("failed", run_ends.LOST_MESSAGE))


def test_cancelling_a_finished_run_changes_nothing(editor):
    run = wait_for_end(start_run(AgentFactory(model=DEMO), editor))

    answer = Caller(api_key(editor)).post(f"/api/runs/{run.pk}/cancel")

    assert (answer.status_code, answer.body["status"]) == (200, "succeeded")
    run.refresh_from_db()
    assert run.cancel_requested_at is None


def test_a_run_is_cancelled_by_its_row_only(agent, editor):
    run = wait_for_text(start_run(agent, editor, LONG))

    AgentRun.objects.filter(pk=run.pk).update(cancel_requested_at=timezone.now())

    assert wait_for_end(run).status == "cancelled"


def test_deleting_an_agent_ends_its_runs(agent, editor):
    run = wait_for_text(start_run(agent, editor, LONG))

    agent.delete()

    assert not AgentRun.objects.filter(pk=run.pk).exists()
    assert get_engine().writer.wait_until_flushed(10)


def test_a_stream_reports_that_the_agent_was_deleted(agent, editor):
    run = wait_for_text(start_run(agent, editor, LONG))
    answer = Caller(api_key(editor)).client.get(f"/api/runs/{run.pk}/stream")
    agent.delete()

    blocks = b"".join(answer.streaming_content).decode().split("\n\n")

    assert f"Run {run.pk} was deleted." in blocks[-3]
    assert '"type":"error"' in blocks[-3]
    assert blocks[-2] == "data: [DONE]"


def ask(caller):
    try:
        return caller.post("/api/agents/concierge/generate", {"messages": LONG})
    finally:
        connection.close()


def test_generate_reports_that_the_agent_was_deleted(agent, editor):
    caller = Caller(api_key(editor))
    with ThreadPoolExecutor(1) as waiting:
        request = waiting.submit(ask, caller)
        wait_until(lambda: AgentRun.objects.filter(events__data__type="text-delta").exists(), 30, "the first words")
        run = AgentRun.objects.get()
        agent.delete()
        answer = request.result(30)

    assert (answer.status_code, answer.body["code"]) == (404, "not_found")
    assert answer.body["error"] == f"Run {run.pk} of agent concierge was deleted while it answered"


def test_a_run_of_a_dead_process_fails_with_a_reason(agent, editor):
    run = lost_run(agent, editor)
    run.events.create(number=1, type="chunk", data={"type": "start", "payload": {}})

    tasks.reap_runs()

    run.refresh_from_db()
    assert (run.status, run.error) == ("failed", run_ends.LOST_MESSAGE)
    assert run.finished_at is not None
    assert chunks(run)[-1] == {
        "type": "error",
        "payload": {"error": {"name": "Error", "message": run_ends.LOST_MESSAGE}},
    }
    assert [event.number for event in run.events.all()] == [1, 2]


def test_reading_a_lost_run_ends_it(agent, editor):
    run = lost_run(agent, editor)

    answer = Caller(api_key(editor)).client.get(f"/api/runs/{run.pk}/stream")

    assert run_ends.LOST_MESSAGE.encode() in b"".join(answer.streaming_content)


def test_a_lost_run_with_a_cancel_request_is_cancelled(agent, editor):
    run = lost_run(agent, editor, cancel_requested_at=timezone.now())

    tasks.reap_runs()

    run.refresh_from_db()
    assert (run.status, run.error, chunks(run)[-1]["type"]) == ("cancelled", "", "abort")


def test_an_error_with_one_lost_run_ends_the_others(agent, editor):
    first, second = sorted((lost_run(agent, editor) for _ in range(2)), key=lambda run: run.pk)

    def fail(run_id, **kwargs):
        if run_id == first.pk:
            raise ValueError("A receiver of this project is wrong.")

    run_ends.run_ending.connect(fail)
    try:
        tasks.reap_runs()
    finally:
        run_ends.run_ending.disconnect(fail)

    assert dict(AgentRun.objects.values_list("pk", "status")) == {first.pk: "running", second.pk: "failed"}


def test_a_run_with_a_valid_lease_is_not_failed(agent, editor):
    run = lost_run(agent, editor, lease_until=timezone.now() + timedelta(minutes=5))

    assert run_ends.end_lost_runs() == 0
    assert not run_ends.end_lost_run(run.pk)


def test_a_lost_run_is_ended_soon_after_the_clock_was_set_back(agent, editor):
    run = lost_run(agent, editor, lease_until=timezone.now() + timedelta(hours=1))
    living = lost_run(agent, editor, lease_until=timezone.now() + LEASE_DURATION)

    assert run_ends.end_lost_runs() == 0

    run.refresh_from_db()
    assert run.lease_until - timezone.now() <= LEASE_DURATION
    assert AgentRun.objects.get(pk=living.pk).lease_until == living.lease_until


def test_a_process_that_lost_its_lease_writes_nothing(agent, editor):
    run = wait_for_text(start_run(agent, editor, LONG, options={"durable": False}))
    AgentRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    while not run_ends.end_lost_run(run.pk):  # unless the lease was renewed in between
        AgentRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))

    assert get_engine().writer.wait_until_flushed(20)

    run.refresh_from_db()
    assert (run.status, run.error) == ("failed", run_ends.LOST_MESSAGE)
    assert chunks(run)[-1]["type"] == "error"
    assert run.events.count() == run.last_event_number


def test_a_stopping_process_ends_its_runs_with_a_reason(agent, editor, monkeypatch):
    monkeypatch.setattr("runs_app.engine.engine.SHUTDOWN_TIMEOUT", 30)
    for name in ("cancel_run", "executes"):  # a new engine replaces them
        monkeypatch.setattr(notifier, name, getattr(notifier, name))
    ours = Engine()
    monkeypatch.setattr(rows, "get_engine", lambda: ours)
    run = wait_for_text(start_run(agent, editor, LONG, options={"durable": False}))

    ours.stop()

    run.refresh_from_db()
    assert (run.status, run.error) == ("failed", run_ends.LOST_MESSAGE)
    with pytest.raises(Unavailable):
        start_run(agent, editor)


def test_lost_runs_are_checked_at_the_documented_interval(settings):
    often = settings.CELERY_BEAT_SCHEDULE["reap-runs"]["schedule"]

    assert LEASE_DURATION.total_seconds() + often <= 20
