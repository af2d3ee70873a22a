"""The chunks of waiting calls, and those with which a stream begins that answers a decision."""

from __future__ import annotations

import json

from django.db.models import Max

from agentcms.wire.json_types import JSONObject
from runs_app.approvals.lookup import CallTree, waiting_calls_among
from runs_app.events.stream_chunks import SUSPENDED_TYPE, StreamChunk, build_chunk
from runs_app.models import AgentRun, PendingCall, RunEvent

# What `resumeStream` of the published client sends for a call that waits for approval.
APPROVAL_RESUME_SCHEMA: JSONObject = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


def waiting_chunk(call: PendingCall, shown_id: str) -> StreamChunk:
    """Return the chunk of a call that waits for a person. `shown_id` is its ID in the events of a run."""
    payload = {"toolCallId": shown_id, "toolName": call.tool, "args": call.arguments}
    if call.kind == PendingCall.Kind.APPROVAL:
        return build_chunk("tool-call-approval", **payload, resumeSchema=json.dumps(APPROVAL_RESUME_SCHEMA))
    schema = json.dumps(call.resume_schema or {})
    return build_chunk("tool-call-suspended", **payload, resumeSchema=schema, suspendPayload=call.payload)


def suspension_number(run: AgentRun, call: PendingCall) -> int:
    """Return the number of the event with which a run began to wait for a call of it or of a sub-agent.

    A run does not wait for the sub-agents of its deferred tasks: then return the number of its last event.
    """
    if call.is_open and run.status != AgentRun.Status.SUSPENDED:
        return RunEvent.objects.filter(run=run.pk).aggregate(last=Max("number"))["last"] or 0
    events = RunEvent.objects.filter(run=run.pk, type=RunEvent.Type.SUSPENDED)
    if not call.is_open and call.decided_at is not None:
        events = events.filter(created_at__lte=call.decided_at)
    return events.order_by("-number").values_list("number", flat=True).first() or 0


def chunks_after_decision(run: AgentRun, call: PendingCall) -> list[StreamChunk]:
    """Return the chunks with which a stream begins that answers the decision about a call.

    Clients expect the chunk of a call before its result, so those of the decided calls are repeated, and of calls
    whose sub-agents still work. If the run still waits for other calls, these follow, and end the stream.
    """
    # Read once: somebody else may decide another call meanwhile.
    calls = [*PendingCall.objects.filter(root_id=run.root_id or run.pk)]
    tree, waiting = CallTree(calls), waiting_calls_among(calls, run)
    own = find_own_call(tree, run, call)
    together = [other for other in tree.calls_by_run[own.run_id or run.pk] if other.segment == own.segment]
    chunks = [
        build_chunk("tool-call", toolCallId=other.call_id, toolName=other.tool, args=other.current_arguments)
        for other in together
        if other.pk == own.pk or not tree.is_waiting(other)
    ]
    # Otherwise the run has gone on, and calls for which it waits since then are in the events that follow.
    if any(waited_before(reachable.call, call) for reachable in waiting):
        chunks += [waiting_chunk(reachable.call, reachable.shown_id) for reachable in waiting]
        chunks.append(build_chunk(SUSPENDED_TYPE))
    return chunks


def find_own_call(tree: CallTree, run: AgentRun, call: PendingCall) -> PendingCall:
    """Return the call of a run itself that leads to a call of a sub-agent, or that call if it is one of the run."""
    for own in tree.calls_by_run[run.pk]:
        child_id = tree.child_of(own) if own.kind == PendingCall.Kind.CHILD else None
        if child_id is not None and any(below.call.pk == call.pk for below in tree.reachable_from(child_id)):
            return own
    return call


def waited_before(call: PendingCall, decided: PendingCall) -> bool:
    """Return whether a call waited already when another one was decided."""
    return decided.decided_at is None or call.created_at <= decided.decided_at
