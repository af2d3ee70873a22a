"""The segments of a run, before and after people decide: the choice of tools, limits, steps, and signals."""

from contextlib import suppress

import pytest
from django.db import connection
from pydantic import BaseModel

from agents_app.configuration.schema import ConfigError
from agents_app.registry import Kind, registry, tool
from runs_app import stop_conditions
from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.calling import current
from runs_app.engine.engine import get_engine
from runs_app.engine.start.concurrency_limits import TooManyRuns
from runs_app.models import AgentRun, PendingCall
from runs_app.signals import approval_decided, approval_requested
from runs_app.stop_conditions import stop_condition
from tests.durable.decisions import settle, wait_for_suspension
from tests.durable.test_approval import PLAN, REFUND, start
from tests.durable.test_journal import lose, notes, take_over, wait_for_steps
from tests.factories import AgentFactory, member
from tests.runs import DEMO, chunks, start_run, wait_for_end
from tests.runs_app.factories import RunFactory
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine", "planned")


def test_a_required_call_is_required_once(planned):
    model = {"provider": "planned", "name": "plan", "plan": PLAN, "notes_choice": True}
    agent = AgentFactory(model=model, tools=["refund"])
    run = start_run(agent, member("editor"), "Begin", options={"toolChoice": "required"})
    settle(wait_for_suspension(run), "approve")

    assert wait_for_end(run).status == "succeeded"
    assert notes(planned, "choice") == ["choice 0 required", "choice 1 None"]


def test_a_call_that_waits_is_no_step_until_it_is_decided():
    run = wait_for_suspension(start())
    assert [*run.steps.values_list("key", flat=True)] == ["0/m/1"]

    settle(run, "approve")

    wait_for_end(run)
    keys = run.steps.order_by("key").values_list("key", "state")
    assert [*keys] == [("0/m/1", "done"), ("1/m/1", "done"), ("1/t/c0-0", "done")]


def test_the_limit_of_waiting_runs_never_refuses_a_suspension(planned, settings):
    settings.RUNS_SUSPENDED_PER_USER = 1
    run = start([[["count", {"number": 1, "gate": "one"}]], [REFUND], "Done."])
    RunFactory(suspended=True, chunks=[], requested_by=run.requested_by)
    wait_until(lambda: run.steps.filter(kind="tool").exists(), 30, "the first call")

    (planned / "one.open").touch()

    wait_for_suspension(run)
    with pytest.raises(TooManyRuns):
        start_run(AgentFactory(model=DEMO), run.requested_by)
    settle(run, "approve")
    assert wait_for_end(run).status == "succeeded"


def test_other_code_hears_of_a_call_and_of_its_decision_after_the_commit():
    heard = []

    def hear(signal, call, **kwargs):
        stored = PendingCall.objects.get(pk=call.pk)
        heard.append((signal is approval_requested, stored.tool, stored.state, connection.in_atomic_block))

    for signal in (approval_requested, approval_decided):
        signal.connect(hear)
    try:
        run = wait_for_suspension(start())
        wait_until(lambda: heard, 20, "the signal")
        settle(run, "decline", reason="No.")
    finally:
        for signal in (approval_requested, approval_decided):
            signal.disconnect(hear)

    assert heard == [(True, "refund", "open", False), (False, "refund", "declined", False)]
    wait_for_end(run)


@pytest.mark.parametrize("is_durable", [True, False], ids=["durable", "not durable"])
def test_code_may_decide_a_call_as_soon_as_it_hears_of_it(planned, is_durable):
    """The thread that hears of it has not yet told the task of the run that its suspension is written."""

    def approve(call, **kwargs):
        decide_pending_call(call, Decision(Verdict.APPROVE), call.requested_by, PendingCall.Via.API)
        get_engine().take_queued()
        with suppress(AssertionError):  # no process may claim the run so early
            wait_until(AgentRun.objects.filter(pk=call.run_id, status="running").exists, 1, "a claim")

    approval_requested.connect(approve)
    try:
        done = wait_for_end(start(is_durable=is_durable))
    finally:
        approval_requested.disconnect(approve)

    assert (done.status, done.error, done.attempts) == ("succeeded", "", 0)
    assert (done.claims.count(), len(notes(planned, "refund"))) == (1, 1)
    wait_until(lambda: not get_engine().journals, 10, "the end of each task")


def test_a_model_of_pydantic_is_the_schema_of_an_answer(planned):
    class Size(BaseModel):
        size: int

    @tool("ask-size", resume_schema=Size)
    def ask_size() -> str:
        """Ask for a size."""
        if (data := current().resume_data) is None:
            current().suspend({"question": "Which size?"})
        return f"Size {data['size']}"

    assert registry.get(Kind.TOOL, "ask-size").resume_schema["required"] == ["size"]
    run = wait_for_suspension(start([[["ask-size", {}]], "Done."], tools=["ask-size"]))

    settle(run, "resume", resume_data={"size": 4})

    assert wait_for_end(run).status == "succeeded"
    assert PendingCall.objects.get().resume_schema["properties"]["size"]["type"] == "integer"


# --- Stop conditions


@pytest.fixture
def stop_after(monkeypatch):
    """Return a function that registers a condition, which ends a run after so many calls of tools."""
    monkeypatch.setattr(stop_conditions, "_conditions", {})

    def register(condition, name="enough"):
        stop_condition(name)(condition)

    return register


def two_calls(steps):
    return sum(len(step.calls) for step in steps) == 2


async def two_calls_later(steps):
    return two_calls(steps)


def broken(steps):
    raise KeyError(len(steps))


COUNTS = [[["count", {"number": number}]] for number in range(4)]


@pytest.mark.parametrize("is_durable", [True, False], ids=["durable", "not durable"])
@pytest.mark.parametrize(("condition", "calls"), [(two_calls, 2), (two_calls_later, 2), (broken, 1)])
def test_a_stop_condition_ends_a_run_after_a_step(planned, stop_after, condition, calls, is_durable):
    stop_after(condition)

    done = wait_for_end(start([*COUNTS, "Done."], is_durable=is_durable, stop_when="enough"))

    assert (done.status, done.output, done.finish_reason, done.error) == ("succeeded", "", "stop", "")
    assert notes(planned, "model") == [f"model {number}" for number in range(calls)]
    assert len(chunks(done, "tool-result")) == len(chunks(done, "step-finish")) == calls
    assert len(chunks(done, "finish")) == 1
    ends = [chunk["payload"]["stepResult"] for chunk in chunks(done, "step-finish")]
    assert [end["isContinued"] for end in ends] == [True] * (calls - 1) + [False]


def test_a_stop_condition_gets_the_steps_of_all_segments(planned, stop_after):
    histories = []
    stop_after(lambda steps: histories.append(steps) or two_calls(steps))
    run = wait_for_suspension(start([COUNTS[0], [REFUND], "Done."], stop_when="enough"))

    settle(run, "approve")
    done = wait_for_end(run)

    assert (done.status, done.segment, notes(planned, "model")) == ("succeeded", 1, ["model 0", "model 1"])
    assert [len(steps) for steps in histories] == [1, 2]
    (count,), (refund,) = (step.calls for step in histories[-1])
    assert (count.tool, count.arguments, count.result) == ("count", {"number": 0}, "result 0")
    assert (refund.tool, refund.arguments, refund.result) == ("refund", REFUND[1], "120 refunded")


def test_a_stopped_run_stays_stopped_in_another_process(planned, stop_after):
    stop_after(lambda steps: len(steps) == 2)
    run = start([COUNTS[0], [["count", {"number": 1, "gate": "one"}]], "Done."], stop_when="enough")
    wait_for_steps(run, 1, "started")
    wait_for_steps(run, 3)
    lose(run)
    (planned / "one.open").touch()

    done = take_over(run)

    assert (done.status, notes(planned, "model")) == ("succeeded", ["model 0", "model 1"])


def test_a_stopped_run_is_remembered_with_the_results_of_its_calls(planned, stop_after):
    stop_after(two_calls)
    agent_fields = {"memory": "last-messages", "thread": "t1"}
    run = wait_for_end(start([*COUNTS, "Done."], stop_when="enough", **agent_fields))

    stored = [str(message.data) for message in run.thread.messages.order_by("pk")]

    assert [number for number in range(4) if any(f"result {number}" in text for text in stored)] == [0, 1]


def test_an_unknown_stop_condition_starts_no_run():
    with pytest.raises(ConfigError) as raised:
        start([*COUNTS, "Done."], stop_when="unknown")

    assert [issue.field for issue in raised.value.issues] == ["stopWhen"]
    assert not AgentRun.objects.exists()
