"""The segments of a run, before and after people decide: the choice of tools, limits, steps, and signals."""

import pytest
from django.db import connection
from pydantic import BaseModel

from agents_app.registry import Kind, registry, tool
from runs_app.calling import current
from runs_app.engine.start.concurrency_limits import TooManyRuns
from runs_app.models import PendingCall
from runs_app.signals import approval_decided, approval_requested
from tests.durable.decisions import settle, wait_for_suspension
from tests.durable.test_approval import PLAN, REFUND, start
from tests.durable.test_journal import notes
from tests.factories import AgentFactory, member
from tests.runs import DEMO, start_run, wait_for_end
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
