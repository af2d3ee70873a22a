"""Durable runs over Inngest, with an executor that speaks the protocol of its SDK."""

import httpx
import pytest

from runs_app.models import AgentRun
from tests.durable.local_workers import inngest_executor
from tests.durable.test_journal import wait_for_steps
from tests.durable.test_leases import start_here
from tests.factories import AgentFactory
from tests.runs import wait_for_end
from tests.served import wait_until


@pytest.fixture
def executor(transactional_db, planned, idle_engine, settings, request):
    """Serve the application with RUN_ENGINE=inngest, and run the executor that it uses."""
    with inngest_executor(request, settings) as executor:
        yield executor


def test_inngest_calls_the_web_server_which_executes_the_run(executor):
    run = wait_for_end(start_here([[["count", {"number": 0}]], "Done."]))

    assert (run.status, run.output, run.fence) == ("succeeded", "Done.", 1)
    wait_until(lambda: [status for status, _ in executor.answers] == [206, 200], 10, "both answers of the function")


def test_the_app_registers_its_function(executor):
    answer = executor.sync()

    assert answer.status_code == 200, answer.text
    (registration,) = executor.registrations
    (function,) = registration["functions"]
    assert function["triggers"] == [{"event": "agentcms/run.queued"}]


def test_calls_without_the_signature_do_nothing(executor):
    run = start_queued()
    event = {"id": "1", "name": "agentcms/run.queued", "data": {"runId": str(run.pk)}}

    answer = executor.call(event, {}, 0, key="signkey-test-ffff")
    unsigned = httpx.put(executor.app_url, content=b"")

    assert (answer.status_code, unsigned.status_code >= 400) == (401, True)
    run.refresh_from_db()
    assert run.status == "queued"


def test_a_failed_call_is_repeated(executor, monkeypatch):
    from runs_app.engine.engine import Engine

    offer, failures = Engine.offer, []

    def fail_once(self, run_id):
        if not failures:
            failures.append(run_id)
            raise RuntimeError("The process is busy.")
        offer(self, run_id)

    monkeypatch.setattr(Engine, "offer", fail_once)

    run = wait_for_end(start_here(["Done."]))

    assert (run.status, len(failures)) == ("succeeded", 1)


def test_a_free_place_of_the_web_process_is_given_to_a_queued_run(executor, planned, settings):
    settings.RUNS_PER_WORKER = 1
    first = start_here([[["count", {"number": 1, "gate": "one"}]], "Done."])
    wait_for_steps(first, 1, "started")
    second = start_here(["Second."])
    # Both calls have been answered, so only the free slot can start the second run.
    wait_until(lambda: [status for status, _ in executor.answers].count(200) == 2, 10, "the answers of both functions")
    assert AgentRun.objects.get(pk=second.pk).status == "queued"

    (planned / "one.open").touch()

    assert wait_for_end(second).status == "succeeded"


def test_without_inngest_the_process_that_starts_a_run_executes_it(executor, caplog):
    executor.server.shutdown()
    executor.server.server_close()

    run = wait_for_end(start_here(["Done."]))

    assert run.status == "succeeded"
    assert "Inngest is unavailable" in caplog.text


def start_queued() -> AgentRun:
    """Return a queued run that nobody was told of."""
    agent = AgentFactory()
    return AgentRun.objects.create(
        agent=agent, agent_key=agent.pk, configuration={}, input={}, is_durable=True, status="queued"
    )
