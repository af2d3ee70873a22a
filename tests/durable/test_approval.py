"""Tools that a person must approve: what waits, what each decision does, and what the model and readers see."""

import json

import pytest

from runs_app.display.transcript import Transcript
from runs_app.models import PendingCall
from tests.durable.conftest import event_numbers
from tests.durable.decisions import settle, wait_for_suspension
from tests.durable.test_journal import notes
from tests.factories import AgentFactory, member
from tests.runs import chunks, start_run, wait_for_end
from versions_app.retention import delete_surplus

pytestmark = pytest.mark.usefixtures("idle_engine", "planned")

REFUND = ["refund", {"order": "A-17", "amount": 120}]
PLAN = [[REFUND], "Done."]


@pytest.fixture(params=[True, False], ids=["durable", "not durable"])
def is_durable(request):
    return request.param


def start(plan=PLAN, *, tools=("refund", "count"), is_durable=True, options=None, **fields):
    """Start a run of a new agent whose model follows the plan."""
    call = {name: fields.pop(name) for name in ("thread", "client_tools", "stop_when") if name in fields}
    agent = AgentFactory(model={"provider": "planned", "name": "plan", "plan": plan}, tools=[*tools], **fields)
    return start_run(agent, member("editor"), "Begin", options={"durable": is_durable, **(options or {})}, **call)


def test_the_calls_of_a_step_are_listed_in_their_order():
    refunds = [["refund", {"order": order, "amount": 1}] for order in "ABCDEF"]
    wait_for_suspension(start([refunds, "Done."]))

    assert [call.arguments["order"] for call in PendingCall.objects.all()] == [*"ABCDEF"]


def test_a_run_waits_without_a_process(is_durable):
    run = wait_for_suspension(start(is_durable=is_durable))

    call = PendingCall.objects.get()
    assert (run.holder, run.lease_until, run.output, run.finished_at) == ("", None, "", None)
    assert (call.run_id, call.root_id, call.segment, call.kind, call.state) == (run.pk, run.pk, 0, "approval", "open")
    assert (call.tool, call.arguments, call.role, call.four_eyes) == ("refund", REFUND[1], "editor", False)
    assert run.expires_at == call.expires_at
    assert run.suspended_at is not None
    assert [chunk["type"] for chunk in chunks(run)][-3:] == ["tool-call", "tool-call-approval", "suspended"]
    assert run.last_event_number == run.events.count()


def test_an_approved_call_is_executed_once_and_the_run_goes_on(planned, is_durable):
    run = wait_for_suspension(start(is_durable=is_durable))
    assert notes(planned, "refund") == []

    settle(run, "approve")
    done = wait_for_end(run)

    assert (done.status, done.output, done.segment, done.is_durable) == ("succeeded", "Done.", 1, is_durable)
    assert notes(planned, "refund") == ["refund A-17 120 c0-0"]
    assert notes(planned, "model") == ["model 0", "model 1"]
    assert event_numbers(done) == list(range(1, done.last_event_number + 1))
    types = [chunk["type"] for chunk in chunks(done) if not chunk["type"].startswith("text")]
    assert types == [
        *("start", "step-start", "tool-call", "tool-call-approval", "suspended"),
        *("tool-result", "step-finish", "step-start", "step-finish", "finish"),
    ]
    assert chunks(done, "tool-result")[0]["payload"]["result"] == "120 refunded"


def test_a_declined_call_is_not_executed_and_the_model_reads_the_reason(planned, is_durable, monkeypatch):
    run = wait_for_suspension(start(is_durable=is_durable))

    settle(run, "decline", reason="The order is too old.")
    done = wait_for_end(run)

    assert (done.status, notes(planned, "refund")) == ("succeeded", [])
    result = chunks(done, "tool-result")[0]["payload"]
    assert (result["result"], result["isError"]) == ("The order is too old.", True)
    assert len(chunks(done, "tool-call")) == 1


def test_a_call_declined_without_a_reason_says_so():
    run = wait_for_suspension(start())

    settle(run, "decline")

    result = chunks(wait_for_end(run), "tool-result")[0]["payload"]["result"]
    assert result == "Tool call was not approved by the user."


def test_edited_arguments_are_those_of_the_call(planned, is_durable):
    run = wait_for_suspension(start(is_durable=is_durable))

    settle(run, "approve", arguments={"order": "A-17", "amount": 50})
    done = wait_for_end(run)

    assert notes(planned, "refund") == ["refund A-17 50 c0-0"]
    result = chunks(done, "tool-result")[0]["payload"]
    assert (result["result"], result["args"]) == ("50 refunded", {"order": "A-17", "amount": 50})
    (call,) = Transcript(done.events.order_by("number")).calls.values()
    assert (json.loads(call.arguments), call.is_edited) == ({"order": "A-17", "amount": 50}, True)


def test_the_warnings_of_an_agent_stand_once_in_a_run_with_several_segments():
    run = wait_for_suspension(start(tools=("refund", "count", "no-such-tool")))
    fields = [warning["field"] for warning in run.warnings]

    settle(run, "approve")

    done = wait_for_end(run)
    assert [warning["field"] for warning in done.warnings].count("tools") == fields.count("tools") == 1


def test_results_of_unchanged_calls_do_not_repeat_the_arguments():
    run = wait_for_suspension(start())

    settle(run, "approve", arguments={"order": "A-17", "amount": 120.0})

    assert "args" not in chunks(wait_for_end(run), "tool-result")[0]["payload"]


def test_edited_arguments_are_checked_against_the_signature_of_the_tool(planned):
    from runs_app.approvals.errors import InvalidDecision

    run = wait_for_suspension(start())

    with pytest.raises(InvalidDecision) as raised:
        settle(run, "approve", arguments={"order": 5, "amount": "much"})

    assert {issue.field for issue in raised.value.issues} == {"arguments.order", "arguments.amount"}
    run.refresh_from_db()
    assert (run.status, notes(planned, "refund")) == ("suspended", [])


def test_all_calls_must_be_decided_before_the_run_goes_on(planned, is_durable):
    other = ["refund", {"order": "B-2", "amount": 7}]
    run = wait_for_suspension(start([[REFUND, ["count", {"number": 1}], other], "Done."], is_durable=is_durable))
    assert notes(planned, "tool") == ["tool 1 begins", "tool 1 ends"]  # the other call has finished first

    settle(run, "decline", "c0-0", reason="No.")
    run.refresh_from_db()
    assert run.status == "suspended"
    settle(run, "approve", "c0-2")
    done = wait_for_end(run)

    assert (done.status, done.segment, notes(planned, "refund")) == ("succeeded", 1, ["refund B-2 7 c0-2"])
    assert notes(planned, "tool") == ["tool 1 begins", "tool 1 ends"]
    results = {chunk["payload"]["toolCallId"]: chunk["payload"]["result"] for chunk in chunks(done, "tool-result")}
    assert results == {"c0-0": "No.", "c0-1": "result 1", "c0-2": "7 refunded"}
    assert len(chunks(done, "tool-call")) == 3


def test_a_run_can_wait_again_and_again(planned, is_durable):
    run = wait_for_suspension(
        start([[REFUND], [["refund", {"order": "B", "amount": 2}]], "Done."], is_durable=is_durable)
    )
    settle(run, "approve")
    wait_for_suspension(run, 1)
    settle(run, "approve")
    done = wait_for_end(run)

    assert (done.status, done.segment) == ("succeeded", 2)
    assert notes(planned, "refund") == ["refund A-17 120 c0-0", "refund B 2 c1-0"]
    assert notes(planned, "model") == ["model 0", "model 1", "model 2"]
    assert [call.segment for call in PendingCall.objects.order_by("segment")] == [0, 1]
    assert event_numbers(done) == list(range(1, done.last_event_number + 1))
    assert len(chunks(done, "step-start")) == len(chunks(done, "step-finish")) == 3


def register_predicate(monkeypatch, predicate, **rules):
    from agents_app.registry import Kind, registry, tool

    @tool("guarded", requires_approval=predicate, **rules)
    def guarded(amount: float) -> str:
        """Do something guarded."""
        return f"done {amount:g}"

    return lambda: registry.remove(Kind.TOOL, "guarded")


async def above_limit(arguments, calling):
    return arguments["amount"] > 100


def broken(arguments, calling):
    raise KeyError("limit")


async def ending(arguments, calling):
    raise SystemExit("now")  # which would end the event loop with all its runs


@pytest.mark.parametrize(
    ("predicate", "amount", "waits"),
    [
        (lambda arguments, calling: arguments["amount"] > 100, 101, True),
        (lambda arguments, calling: arguments["amount"] > 100, 100, False),
        (above_limit, 101, True),
        (above_limit, 100, False),
        (broken, 1, True),
        (ending, 1, True),
        (lambda arguments, calling: calling.tool_call_id == "c0-0", 1, True),
    ],
)
def test_a_predicate_decides_which_calls_wait(monkeypatch, predicate, amount, waits):
    remove = register_predicate(monkeypatch, predicate)
    try:
        run = start([[["guarded", {"amount": amount}]], "Done."], tools=["guarded"])
        if waits:
            settle(wait_for_suspension(run), "approve")
        done = wait_for_end(run)
    finally:
        remove()

    assert (done.status, done.segment) == ("succeeded", int(waits))
    assert chunks(done, "tool-result")[0]["payload"]["result"] == f"done {amount}"
    assert len(chunks(done, "tool-call")) == len(chunks(done, "tool-result")) == 1


def test_the_rules_of_a_tool_are_those_of_its_calls(monkeypatch):
    from datetime import timedelta

    remove = register_predicate(monkeypatch, True, approver="manager", four_eyes=True, expires=60)
    try:
        run = wait_for_suspension(start([[["guarded", {"amount": 1}]], "Done."], tools=["guarded"]))
    finally:
        remove()

    call = PendingCall.objects.get()
    assert (call.role, call.four_eyes) == ("manager", True)
    assert call.expires_at - call.created_at == timedelta(seconds=60)
    assert run.expires_at == call.expires_at


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"approver": "viewer"}, "one of 'editor', 'publisher', 'manager'"),
        ({"expires": 0}, "more than 0 seconds"),
        ({"resume_schema": 5}, "JSON Schema or a pydantic model"),
        ({"resume_schema": {"type": "strange"}}, "is not a JSON Schema"),
    ],
)
def test_rules_that_make_no_sense_are_refused_at_the_registration(rules, message):
    from django.core.exceptions import ImproperlyConfigured

    from agents_app.registry import tool

    with pytest.raises(ImproperlyConfigured, match=message):
        tool("senseless", **rules)(lambda: None)


@pytest.mark.parametrize(
    ("call", "default", "waits"),
    [
        (True, None, True),
        (["count"], None, True),
        (["refund"], None, False),
        (None, True, True),
        (False, True, True),
        (["refund"], ["count"], True),
        (None, None, False),
    ],
)
def test_a_call_and_an_agent_can_require_approval_of_more_tools(planned, call, default, waits):
    options = {} if call is None else {"requireToolApproval": call}
    defaults = {} if default is None else {"requireToolApproval": default}
    run = start([[["count", {"number": 1}]], "Done."], options=options, default_options=defaults)

    if waits:
        wait_for_suspension(run)
        assert notes(planned, "tool") == []
        settle(run, "approve")

    assert wait_for_end(run).status == "succeeded"
    assert notes(planned, "tool") == ["tool 1 begins", "tool 1 ends"]


def test_a_call_with_a_client_tool_beside_it_is_not_executed(planned):
    """The answer of the client comes with the next call, so the run cannot wait for a person too."""
    lookup = {"name": "lookup", "description": "Look up.", "schema": {"type": "object", "properties": {}}}
    done = wait_for_end(
        start([[REFUND, ["lookup", {}]], "Done."], client_tools=[lookup], memory="last-messages", thread="t")
    )

    assert (done.status, done.finish_reason, notes(planned, "refund")) == ("succeeded", "tool-calls", [])
    assert not PendingCall.objects.exists()


def test_memory_keeps_a_run_that_waited_once(planned):
    run = wait_for_suspension(start(memory="last-messages", thread="t"))
    assert run.thread.messages.count() == 0

    settle(run, "approve")
    done = wait_for_end(run)

    assert done.thread.messages.count() == 4


def test_calls_to_which_a_model_gives_one_id_are_decided_one_by_one(planned, is_durable):
    refunds = [["refund", {"order": order, "amount": 1}] for order in "ABC"]
    model = {"provider": "planned", "name": "plan", "plan": [refunds, refunds[:1], "Done."], "call_id": "same"}
    agent = AgentFactory(model=model, tools=["refund"])
    run = wait_for_suspension(start_run(agent, member("editor"), "Begin", options={"durable": is_durable}))
    ids = {call.arguments["order"]: call.call_id for call in PendingCall.objects.all()}

    for order, verdict in (("A", "decline"), ("B", "approve"), ("C", "decline")):
        settle(run, verdict, ids[order])
    settle(wait_for_suspension(run, segment=1), "approve")
    done = wait_for_end(run)

    assert (done.status, done.output) == ("succeeded", "Done.")
    assert [text[:10] for text in notes(planned, "refund")] == ["refund B 1", "refund A 1"]
    called = [chunk["payload"]["toolCallId"] for chunk in chunks(done, "tool-call")]
    assert called == [*ids.values(), PendingCall.objects.last().call_id]
    assert len({*called}) == len(refunds) + 1
    assert [chunk["payload"]["toolCallId"] for chunk in chunks(done, "tool-result")].count(ids["B"]) == 1


def test_a_run_that_waits_goes_on_after_its_version_was_deleted_by_retention(planned):
    run = wait_for_suspension(start())
    agent = run.agent
    for number in range(3):
        agent.edit({"description": f"Change {number}"})
    assert delete_surplus([agent.pk], 1) > 0
    assert not agent.versions.filter(pk=run.version_id).exists()

    settle(run, "approve")

    assert wait_for_end(run).output == "Done."
    assert len(notes(planned, "refund")) == 1
