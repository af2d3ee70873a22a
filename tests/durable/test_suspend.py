"""Tools that suspend themselves to ask a person, and what holds over all segments of a run."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from runs_app.approvals import resuming
from runs_app.approvals.errors import AlreadyDecided, InvalidDecision
from runs_app.engine import reaper, run_ends
from runs_app.engine.engine import get_engine
from runs_app.events import writer
from runs_app.models import AgentRun, PendingCall
from runs_app.signals import approval_decided, approval_requested
from tests.durable.conftest import QuietRunner
from tests.durable.decisions import settle, wait_for_suspension
from tests.durable.test_approval import PLAN, REFUND, start
from tests.durable.test_journal import notes, wait_for_steps
from tests.factories import member
from tests.runs import chunks, wait_for_end
from tests.served import wait_until

ASK = ["ask-person", {"question": "Which size?"}]
TWICE = ["ask-person", {"question": "Which size?", "again": "M"}]


@pytest.fixture
def here(idle_engine, planned):
    """Let this process execute the runs."""


@pytest.fixture(params=[True, False], ids=["durable", "not durable"])
def is_durable(request):
    return request.param


@pytest.fixture
def announced():
    """Return a list of the states of the calls of which other code hears during the test."""
    states = []

    def hear(call, **kwargs):
        states.append((call.tool, call.state))

    for signal in (approval_requested, approval_decided):
        signal.connect(hear)
    yield states
    for signal in (approval_requested, approval_decided):
        signal.disconnect(hear)


def start_question(question=ASK, **fields):
    return start([[question], "Done."], tools=["ask-person"], **fields)


def test_a_tool_asks_a_person_and_gets_the_answer_once(planned, here, is_durable):
    run = wait_for_suspension(start_question(is_durable=is_durable))
    call = PendingCall.objects.get()
    assert (call.kind, call.payload) == ("suspend", {"question": "Which size?"})
    assert call.resume_schema["properties"] == {"size": {"type": "string"}}
    (reported,) = chunks(run, "tool-call-suspended")
    assert reported["payload"]["suspendPayload"] == {"question": "Which size?"}
    assert '"size"' in reported["payload"]["resumeSchema"]

    settle(run, "resume", resume_data={"size": "L"})
    done = wait_for_end(run)

    assert (done.status, done.output) == ("succeeded", "Done.")
    assert notes(planned, "ask") == ["ask None c0-0", "ask {'size': 'L'} c0-0"]  # one idempotency key
    assert [chunk["payload"]["result"] for chunk in chunks(done, "tool-result")] == ["Size L"]
    assert len(chunks(done, "tool-call")) == 1


def test_a_tool_can_ask_twice(planned, here, is_durable):
    run = wait_for_suspension(start_question(TWICE, is_durable=is_durable))
    settle(run, "resume", resume_data={"size": "L"})
    wait_for_suspension(run, 1)
    assert PendingCall.objects.get(segment=1).payload == {"question": "Really L?"}

    settle(run, "resume", resume_data={"size": "M"})

    assert wait_for_end(run).status == "succeeded"
    assert notes(planned, "ask") == ["ask None c0-0", "ask {'size': 'L'} c0-0", "ask {'size': 'M'} c0-0"]


def test_data_that_does_not_fit_is_refused_and_the_run_waits_on(here):
    run = wait_for_suspension(start_question())

    with pytest.raises(InvalidDecision) as raised:
        settle(run, "resume", resume_data={"size": 5})

    assert [issue.field for issue in raised.value.issues] == ["resumeData.size"]
    run.refresh_from_db()
    assert run.status == "suspended"


def test_a_question_can_be_declined(planned, here):
    run = wait_for_suspension(start_question())

    settle(run, "decline", reason="Nobody knows.")

    assert chunks(wait_for_end(run), "tool-result")[0]["payload"]["result"] == "Nobody knows."
    assert notes(planned, "ask") == ["ask None c0-0"]


# --- Limits over all segments


def test_the_limit_of_steps_holds_over_all_segments(here):
    run = wait_for_suspension(start([[REFUND], [REFUND], "Done."], options={"maxSteps": 2}))
    settle(run, "approve")
    settle(wait_for_suspension(run, 1), "approve")

    done = wait_for_end(run)

    assert (done.status, done.segment) == ("failed", 2)
    assert "limit of steps" in done.error


def test_usage_counts_all_segments(here):
    usual = wait_for_end(start([[["count", {"number": 1}]], "Done."]))
    run = wait_for_suspension(start([[["count", {"number": 1}]], "Done."], options={"requireToolApproval": True}))
    first = run.usage["totalTokens"]
    settle(run, "approve")

    done = wait_for_end(run)

    assert 0 < first < done.usage["totalTokens"] == usual.usage["totalTokens"]


def test_the_limit_of_tokens_holds_over_all_segments(here, settings):
    run = wait_for_suspension(start())
    settings.RUN_MAX_TOKENS = run.usage["totalTokens"] + 1
    settle(run, "approve")

    done = wait_for_end(run)

    assert done.status == "failed"
    assert "limit of tokens" in done.error


def test_the_time_of_waiting_does_not_count(here, settings):
    settings.RUN_TIMEOUT = 60
    run = wait_for_suspension(start())
    assert 0 < run.worked_ms < 30_000
    long_ago = timezone.now() - timedelta(days=6)
    AgentRun.objects.filter(pk=run.pk).update(suspended_at=long_ago, started_at=long_ago, created_at=long_ago)

    settle(run, "approve")

    assert wait_for_end(run).status == "succeeded"


# --- Expiry, cancelling, races


def test_an_expired_call_is_declined_by_the_reaper(planned, here):
    run = wait_for_suspension(start())
    past = timezone.now() - timedelta(days=8)
    PendingCall.objects.update(created_at=past, expires_at=past + timedelta(days=7))
    AgentRun.objects.update(expires_at=past + timedelta(days=7))

    reaper.reap_once()
    done = wait_for_end(run)

    assert done.status == "succeeded"
    assert chunks(done, "tool-result")[0]["payload"]["result"] == "Nobody decided within 7 days."
    assert (PendingCall.objects.get().state, notes(planned, "refund")) == ("expired", [])


def test_other_code_hears_that_a_waiting_call_is_cancelled_with_its_run(here, announced):
    run = wait_for_suspension(start())
    wait_until(lambda: announced, 20, "the request")

    run_ends.cancel_run(run.pk)

    assert announced == [("refund", "open"), ("refund", "cancelled")]


def test_a_run_that_is_cancelled_just_before_it_waits_does_not_wait(planned, here, announced, monkeypatch):
    monkeypatch.setattr(writer, "CANCEL_POLL_INTERVAL", 600)  # the suspension is the first that reads the request
    run = start([[["count", {"number": 1, "gate": "one"}], REFUND], "Done."])
    wait_for_steps(run, 1, "started")
    AgentRun.objects.filter(pk=run.pk).update(cancel_requested_at=timezone.now())
    (planned / "one.open").touch()

    assert wait_for_end(run).status == "cancelled"
    assert PendingCall.objects.get().state == "cancelled"
    assert announced == []  # nobody can decide the call


@pytest.mark.parametrize("number", [1, 2])
def test_a_run_that_is_cancelled_while_somebody_decides_its_call_is_stopped(planned, here, monkeypatch, number):
    run = wait_for_suspension(start([[REFUND], [["count", {"number": 1, "gate": "never"}]], "Done."]))
    lock_run, locks = run_ends.lock_run, []

    def lock_after_decision(*arguments):
        locks.append(arguments)
        if len(locks) == number:
            settle(run, "approve")
        return lock_run(*arguments)

    monkeypatch.setattr(run_ends, "lock_run", lock_after_decision)
    monkeypatch.setattr(resuming, "get_runner", QuietRunner)  # the run is claimed after it was cancelled
    run_ends.cancel_run(run.pk)
    get_engine().offer(run.pk)

    assert wait_for_end(run).status == "cancelled"


def test_of_two_people_who_decide_at_once_one_wins(planned, here):
    run = wait_for_suspension(start())
    people = [member("publisher"), member("publisher")]
    barrier, outcomes = threading.Barrier(2), []

    def decide_as(person, verdict):
        try:
            barrier.wait(10)
            outcomes.append(settle(run, verdict, "c0-0", user=person).state)
        except AlreadyDecided as error:
            outcomes.append(error.call.decided_by_name)
        finally:
            connection.close()

    threads = [
        threading.Thread(target=decide_as, args=pair) for pair in zip(people, ("approve", "decline"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    call = PendingCall.objects.get()
    assert sorted(outcomes) == sorted([call.state, call.decided_by_name])
    done = wait_for_end(run)
    assert (done.status, done.segment) == ("succeeded", 1)
    assert len(notes(planned, "refund")) == (call.state == "approved")


# --- Other processes


def test_a_decision_after_six_days_is_carried_out_by_another_process(engine):
    first = engine.start_process()
    run = wait_for_suspension(engine.start(PLAN, tools=("refund",)))
    engine.kill(first)
    past = timezone.now() - timedelta(days=6)
    AgentRun.objects.filter(pk=run.pk).update(suspended_at=past, created_at=past, started_at=past)
    PendingCall.objects.update(created_at=past)
    engine.start_process()

    settle(run, "approve")
    done = engine.finish(run)

    assert (done.status, done.output, done.segment) == ("succeeded", "Done.", 1)
    assert engine.notes("refund") == ["refund A-17 120 c0-0"]
    assert engine.notes("model") == ["model 0", "model 1"]


def test_a_process_killed_in_an_approved_call_repeats_the_call_and_nothing_else(any_engine):
    slow = ["count", {"number": 1, "gate": "one"}]
    first = any_engine.start_process()
    run = any_engine.start([[REFUND, slow], "Done."], tools=("refund", "count"))
    any_engine.open("one")
    wait_for_suspension(run)
    any_engine.kill(first)
    second = any_engine.start_process()
    settle(run, "approve")
    any_engine.wait_for_note("refund A-17 120 c0-0")
    any_engine.kill(second)
    any_engine.start_process()

    done = any_engine.finish(run)

    assert done.status == "succeeded"
    assert any_engine.notes("tool") == ["tool 1 begins", "tool 1 ends"]
    numbers = list(run.events.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))
    for kind in ("tool-call", "tool-result"):
        ids = [chunk["payload"]["toolCallId"] for chunk in chunks(done, kind)]
        assert sorted(ids) == ["c0-0", "c0-1"]
