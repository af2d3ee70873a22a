"""The worker of `deploy/start`, which ends although a tool of one of its runs does not, or blocks its event loop."""

import pytest

from tests.durable.conftest import event_numbers, running_engine


@pytest.fixture
def engine(request, planned, transactional_db, settings, monkeypatch):
    """Return Celery with the worker of the application."""
    command = ["-m", "agentcms.server.worker", "--without-beat"]
    with running_engine("celery", request, planned, settings, monkeypatch, command) as processes:
        yield processes


def test_a_tool_that_does_not_end_keeps_no_worker_from_stopping(engine):
    first = engine.start_process()
    run = engine.start([[["count", {"number": 5, "gate": "late"}]], "Done."])
    engine.wait_for_note("tool 5 begins")

    first.terminate()
    exit_code = first.wait(25)  # the gate lets the tool go on for a minute
    engine.open("late")
    engine.start_process()

    done = engine.finish(run)
    assert (exit_code, done.status, done.output) == (0, "succeeded", "Done.")
    assert event_numbers(done) == list(range(1, done.last_event_number + 1))
    assert engine.notes("tool 5") == ["tool 5 begins", "tool 5 begins", "tool 5 ends"]


def test_a_worker_whose_event_loop_is_blocked_ends_with_a_traceback(engine, monkeypatch):
    monkeypatch.setenv("WORKER_STALL_TIMEOUT", "4")
    first = engine.start_process()
    run = engine.start([[["block-loop", {}]], "Done."], tools=["block-loop"])
    engine.wait_for_note("block-loop begins")

    exit_code = first.wait(25)
    log = engine.log()
    engine.start_process()

    done = engine.finish(run)
    assert (exit_code, done.status, done.output) == (1, "succeeded", "Done.")
    assert "Timeout (0:00:04)!" in log
    assert "in block_loop" in log
