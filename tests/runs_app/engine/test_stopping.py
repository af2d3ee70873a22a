"""A run is stopped, or lost with the process that carried it."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from runs_app import tasks
from runs_app.engine import leases, start
from runs_app.engine.engine import Engine, get_engine
from runs_app.events.notifications import notifier
from runs_app.models import AgentRun
from runs_app.models.run import LEASE_DURATION
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, LONG, SLOW, begin, chunks, ended, speaks
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("engine_at_rest")


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", model=SLOW)


def lost(agent, user, **columns):
    """A run of a process that said nothing for long."""
    run = AgentRun(agent=agent, agent_key=agent.pk, requested_by=user, configuration={}, input={"messages": []})
    values = {"status": "running", "holder": "elsewhere:1", "lease_until": timezone.now() - timedelta(seconds=1)}
    for name, value in {**values, **columns}.items():
        setattr(run, name, value)
    run.save()
    return run


def test_a_stopped_run_keeps_what_it_said(agent, editor):
    run = speaks(begin(agent, editor, LONG))

    answer = Caller(api_key(editor)).post(f"/api/runs/{run.pk}/cancel")

    assert answer.status_code == 200
    done = ended(run)
    assert (done.status, done.error, done.finish_reason) == ("cancelled", "", "")
    assert done.output == "".join(chunk["payload"]["text"] for chunk in chunks(done, "text-delta")) != ""
    assert chunks(done)[-1]["type"] == "abort"
    assert done.events.last().type == "finish"


def test_generate_says_that_its_run_was_stopped(agent, editor):
    caller = Caller(api_key(editor))
    start.cancel_run(begin(agent, editor, LONG, key="a"))

    answer = caller.post("/api/agents/concierge/generate", {"messages": LONG}, Idempotency_Key="a")

    assert (answer.status_code, answer.body["code"]) == (409, "run_cancelled")


def test_stopping_what_is_over_changes_nothing(editor):
    run = ended(begin(AgentFactory(model=DEMO), editor))

    answer = Caller(api_key(editor)).post(f"/api/runs/{run.pk}/cancel")

    assert (answer.status_code, answer.body["status"]) == (200, "succeeded")
    run.refresh_from_db()
    assert run.cancel_requested_at is None


def test_a_run_is_stopped_by_its_row_alone(agent, editor):
    run = speaks(begin(agent, editor, LONG))

    AgentRun.objects.filter(pk=run.pk).update(cancel_requested_at=timezone.now())

    assert ended(run).status == "cancelled"


def test_an_agent_that_is_deleted_ends_its_runs(agent, editor):
    run = speaks(begin(agent, editor, LONG))

    agent.delete()

    assert not AgentRun.objects.filter(pk=run.pk).exists()
    assert get_engine().writer.wait_until_flushed(10)


def test_who_reads_along_is_told_that_the_agent_was_deleted(agent, editor):
    run = speaks(begin(agent, editor, LONG))
    answer = Caller(api_key(editor)).client.get(f"/api/runs/{run.pk}/stream")
    agent.delete()

    blocks = b"".join(answer.streaming_content).decode().split("\n\n")

    assert f"Run {run.pk} was deleted with its agent." in blocks[-3]
    assert '"type":"error"' in blocks[-3]
    assert blocks[-2] == "data: [DONE]"


def ask(caller):
    try:
        return caller.post("/api/agents/concierge/generate", {"messages": LONG})
    finally:
        connection.close()


def test_who_waits_is_told_that_the_agent_was_deleted(agent, editor):
    caller = Caller(api_key(editor))
    with ThreadPoolExecutor(1) as waiting:
        asked = waiting.submit(ask, caller)
        wait_until(lambda: AgentRun.objects.filter(events__data__type="text-delta").exists(), 30, "the first words")
        run = AgentRun.objects.get()
        agent.delete()
        answer = asked.result(30)

    assert (answer.status_code, answer.body["code"]) == (404, "not_found")
    assert answer.body["error"] == f"Agent concierge was deleted while it answered, and run {run.pk} with it"


def test_a_run_whose_process_died_fails_with_a_reason(agent, editor):
    run = lost(agent, editor)
    run.events.create(number=1, type="chunk", data={"type": "start", "payload": {}})

    tasks.reap_runs()

    run.refresh_from_db()
    assert (run.status, run.error) == ("failed", leases.LOST_MESSAGE)
    assert run.finished_at is not None
    assert chunks(run)[-1] == {
        "type": "error",
        "payload": {"error": {"name": "Error", "message": leases.LOST_MESSAGE}},
    }
    assert [event.number for event in run.events.all()] == [1, 2]


def test_whoever_reads_a_lost_run_ends_it(agent, editor):
    run = lost(agent, editor)

    answer = Caller(api_key(editor)).client.get(f"/api/runs/{run.pk}/stream")

    assert leases.LOST_MESSAGE.encode() in b"".join(answer.streaming_content)


def test_a_lost_run_that_was_to_be_stopped_is_stopped(agent, editor):
    run = lost(agent, editor, cancel_requested_at=timezone.now())

    tasks.reap_runs()

    run.refresh_from_db()
    assert (run.status, run.error, chunks(run)[-1]["type"]) == ("cancelled", "", "abort")


def test_a_run_that_is_held_is_not_given_up(agent, editor):
    run = lost(agent, editor, lease_until=timezone.now() + timedelta(minutes=5))

    assert leases.end_lost_runs() == 0
    assert not leases.end_lost_run(run.pk)


def test_a_process_that_lost_a_run_writes_nothing_more(agent, editor):
    run = speaks(begin(agent, editor, LONG))
    AgentRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    while not leases.end_lost_run(run.pk):  # unless it renewed the lease in between
        AgentRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))

    assert get_engine().writer.wait_until_flushed(20)

    run.refresh_from_db()
    assert (run.status, run.error) == ("failed", leases.LOST_MESSAGE)
    assert chunks(run)[-1]["type"] == "error"
    assert run.events.count() == run.last_event_number


def test_a_run_is_begun_by_one_process_alone(agent, editor):
    run = lost(agent, editor, status="queued", lease_until=timezone.now() + timedelta(seconds=9))

    assert leases.claim(run.pk, "one").pk == run.pk
    assert leases.claim(run.pk, "other") is None


def test_a_process_that_stops_ends_its_runs_with_the_reason(agent, editor, monkeypatch):
    monkeypatch.setattr("runs_app.engine.engine.SHUTDOWN_TIMEOUT", 30)
    monkeypatch.setattr(notifier, "cancel_run", notifier.cancel_run)  # the new engine replaces it
    ours = Engine()
    monkeypatch.setattr(start, "get_engine", lambda: ours)
    run = speaks(begin(agent, editor, LONG))

    ours.stop()

    run.refresh_from_db()
    assert (run.status, run.error) == ("failed", leases.LOST_MESSAGE)
    with pytest.raises(start.Unavailable):
        begin(agent, editor)


def test_runs_are_looked_after_as_often_as_the_documentation_says(settings):
    often = settings.CELERY_BEAT_SCHEDULE["reap-runs"]["schedule"]

    assert LEASE_DURATION.total_seconds() + often <= 20
