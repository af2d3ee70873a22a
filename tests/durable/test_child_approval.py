"""Approvals within sub-agents: the runs above wait too, and each decision reaches the model that made the call."""

import pytest
from django.utils import timezone

from runs_app.engine import run_ends
from runs_app.engine.execution import ending
from runs_app.models import AgentRun, PendingCall
from runs_app.tasks import reap_runs
from tests.durable.decisions import settle, wait_for_suspension
from tests.durable.test_approval import REFUND
from tests.durable.test_journal import notes
from tests.factories import AgentFactory, member
from tests.runs import chunks, start_run, wait_for_end
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine", "planned")


def planned_agent(plan, **fields):
    return AgentFactory(model={"provider": "planned", "name": "plan", "plan": plan}, **fields)


def call_of(key):
    return [f"agent-{key}", {"prompt": "Please"}]


@pytest.fixture(params=[True, False], ids=["durable", "not durable"])
def is_durable(request):
    return request.param


def start(levels, *, is_durable=True, leaf_plan=None, options=None):
    """Start a run whose sub-agent, so many levels below, calls a tool that needs approval."""
    planned_agent(leaf_plan or [[REFUND], "Leaf done."], id="level-0", tools=["refund"])
    for level in range(1, levels + 1):
        plan = [[call_of(f"level-{level - 1}")], f"Level {level} done."]
        agent = planned_agent(plan, id=f"level-{level}", agents=[f"level-{level - 1}"])
    return start_run(agent, member("editor"), "Begin", options={"durable": is_durable, **(options or {})})


@pytest.mark.parametrize("levels", [1, 2])
def test_the_runs_above_wait_and_go_on(planned, is_durable, levels):
    run = wait_for_suspension(start(levels, is_durable=is_durable))

    assert set(AgentRun.objects.values_list("status", flat=True)) == {"suspended"}
    assert PendingCall.objects.filter(kind="child").count() == levels
    leaf = PendingCall.objects.get(kind="approval")
    assert (leaf.root_id, leaf.agent_key, leaf.requested_by) == (run.pk, "level-0", run.requested_by)
    (reported,) = chunks(run, "tool-call-approval")
    assert (reported["payload"]["toolCallId"], reported["payload"]["toolName"]) == ("c0-0", "refund")
    assert reported["payload"]["args"] == REFUND[1]

    assert settle(run, "approve").pk == leaf.pk
    done = wait_for_end(run)

    assert (done.status, done.output) == ("succeeded", f"Level {levels} done.")
    assert len(notes(planned, "refund")) == 1
    assert set(AgentRun.objects.values_list("status", flat=True)) == {"succeeded"}
    result = "Leaf done." if levels == 1 else "Level 1 done."
    assert [chunk["payload"]["result"] for chunk in chunks(done, "tool-result")] == [result]
    assert not PendingCall.objects.filter(state="open").exists()


@pytest.mark.parametrize("levels", [1, 2])
def test_the_reason_reaches_the_model_of_the_sub_agent(planned, levels):
    run = wait_for_suspension(start(levels))

    settle(run, "decline", reason="Not this order.")
    done = wait_for_end(run)

    leaf = AgentRun.objects.get(agent_key="level-0")
    (result,) = chunks(leaf, "tool-result")
    assert (result["payload"]["result"], result["payload"]["isError"]) == ("Not this order.", True)
    assert (done.status, notes(planned, "refund")) == ("succeeded", [])


def test_a_sub_agent_that_waits_again_is_reported_above_again(planned):
    plan = [[REFUND], [["refund", {"order": "B", "amount": 1}]], "Leaf done."]
    run = wait_for_suspension(start(2, leaf_plan=plan))
    settle(run, "approve")
    wait_until(
        lambda: len(chunks(run, "tool-call-approval")) == 2, 30, "the second approval in the events of the root"
    )

    assert chunks(run, "tool-call-approval", "suspended")[-1]["type"] == "suspended"
    run.refresh_from_db()
    assert (run.status, run.segment, run.last_event_number) == ("suspended", 0, run.events.count())
    settle(run, "approve")

    assert wait_for_end(run).status == "succeeded"
    assert len(notes(planned, "refund")) == 2


@pytest.mark.parametrize("levels", [1, 2])
def test_a_sub_agent_that_waits_again_while_the_run_above_is_suspended_is_reported_there(
    planned, monkeypatch, is_durable, levels
):
    """The run above has read the first call for its events, and has not written them when the second one comes."""
    report, top = ending.report_suspension, f"level-{levels}"

    def report_and_let_the_next_call_come(calls):
        made = report(calls)
        if calls[0].agent_key == top:
            leaf = AgentRun.objects.get(agent_key="level-0")
            settle(leaf, "approve", user=member("editor", "other", is_superuser=True))
            wait_for_suspension(leaf, 1)
        return made

    monkeypatch.setattr(ending, "report_suspension", report_and_let_the_next_call_come)
    plan = [[REFUND], [["refund", {"order": "B", "amount": 1}]], "Leaf done."]
    run = wait_for_suspension(start(levels, is_durable=is_durable, leaf_plan=plan))

    reported = [chunk["payload"]["args"]["order"] for chunk in chunks(run, "tool-call-approval")]
    assert reported == [REFUND[1]["order"], "B"]
    assert chunks(run, "tool-call-approval", "suspended")[-1]["type"] == "suspended"
    assert run.last_event_number == run.events.count()
    settle(run, "approve")
    assert wait_for_end(run).status == "succeeded"
    assert len(notes(planned, "refund")) == 2


def test_a_child_that_waits_for_several_calls_is_named_with_both_ids():
    run = wait_for_suspension(start(1, leaf_plan=[[REFUND, ["refund", {"order": "B", "amount": 1}]], "Leaf done."]))

    reported = [chunk["payload"]["toolCallId"] for chunk in chunks(run, "tool-call-approval")]
    assert reported == ["c0-0/c0-0", "c0-0/c0-1"]
    settle(run, "approve", reported[0])
    settle(run, "approve", reported[1])

    assert wait_for_end(run).status == "succeeded"


def test_cancelling_the_run_cancels_the_runs_below(planned):
    run = wait_for_suspension(start(2))

    run_ends.cancel_run(run.pk)

    run.refresh_from_db()
    assert (run.status, run.suspended_at, chunks(run)[-1]["type"]) == ("cancelled", None, "abort")
    assert set(AgentRun.objects.values_list("status", flat=True)) == {"cancelled"}
    assert set(PendingCall.objects.values_list("state", flat=True)) == {"cancelled"}


def test_a_child_whose_parent_ended_without_it_is_cancelled():
    run = wait_for_suspension(start(2))
    # What remains of a process that dies after it has committed the end of its run.
    AgentRun.objects.filter(pk=run.pk).update(status="failed", finished_at=timezone.now(), suspended_at=None)

    reap_runs()

    assert {child.status for child in AgentRun.objects.exclude(pk=run.pk)} == {"cancelled"}
    assert not PendingCall.objects.exclude(run=run).filter(state="open").exists()


def test_a_working_child_whose_parent_ended_without_it_is_cancelled():
    run = wait_for_suspension(start(1))
    AgentRun.objects.filter(parent=run).update(status="running", holder="elsewhere:1:a", suspended_at=None)
    AgentRun.objects.filter(pk=run.pk).update(status="cancelled", finished_at=timezone.now(), suspended_at=None)

    reap_runs()

    assert run.children.get().cancel_requested_at is not None


def test_cancelling_a_child_continues_its_parent(planned):
    run = wait_for_suspension(start(1))

    run_ends.cancel_run(run.children.get().pk)
    done = wait_for_end(run)

    assert (done.status, done.output) == ("succeeded", "Level 1 done.")
    (result,) = chunks(done, "tool-result")
    assert (result["payload"]["result"], result["payload"]["isError"]) == ("The agent 'level-0' was stopped.", True)


def test_deleting_the_agent_of_a_child_continues_its_parent(planned):
    from agents_app.models import Agent

    run = wait_for_suspension(start(1))
    call = PendingCall.objects.get(kind="approval")

    Agent.objects.get(pk="level-0").delete()
    done = wait_for_end(run)

    call.refresh_from_db()
    assert (call.state, call.agent_key) == ("cancelled", "level-0")
    assert done.status == "succeeded"
    assert chunks(done, "tool-result")[0]["payload"]["result"] == "The agent was deleted while it worked."


def test_deleting_the_agent_of_the_run_cancels_all_calls(planned):
    from agents_app.models import Agent

    run = wait_for_suspension(start(1))

    Agent.objects.get(pk="level-1").delete()

    assert not AgentRun.objects.filter(root_id=run.pk).exists()
    assert set(PendingCall.objects.values_list("state", flat=True)) == {"cancelled"}


def test_the_approval_of_all_tools_is_required_in_sub_agents_too(planned):
    planned_agent([[["count", {"number": 1}]], "Leaf done."], id="counter", tools=["count"])
    agent = planned_agent([[call_of("counter")], "Done."], agents=["counter"])
    options = {"durable": True, "requireToolApproval": True}
    run = wait_for_suspension(start_run(agent, member("editor"), "Begin", options=options))
    assert not run.children.exists()
    assert settle(run, "approve").tool == "agent-counter"
    wait_for_suspension(run, 1)

    assert settle(run, "approve").tool == "count"

    assert wait_for_end(run).status == "succeeded"
    assert notes(planned, "tool") == ["tool 1 begins", "tool 1 ends"]
