"""Representation of calls that wait for people in the API."""

from __future__ import annotations

from collections.abc import Iterable

from agentcms.wire.json_types import JSONObject
from runs_app.models import AgentRun, PendingCall

ApprovalBody = JSONObject


def approval_body(call: PendingCall) -> ApprovalBody:
    """Return the body of a call that waits for a person, or that was decided."""
    return {
        "id": call.pk,
        "runId": call.run_id,
        "rootRunId": call.root_id,
        "agentId": call.agent_key,
        "toolCallId": call.call_id,
        "toolName": call.tool,
        "args": call.arguments,
        "kind": call.kind,
        "state": call.state,
        "role": call.role,
        "fourEyes": call.four_eyes,
        "mark": call.mark,
        "requestedBy": call.requested_by_name or None,
        "reason": call.reason or None,
        "resumeSchema": call.resume_schema,
        "suspendPayload": call.payload,
        "createdAt": call.created_at,
        "expiresAt": call.expires_at,
        "decidedAt": call.decided_at,
        "decidedBy": call.decided_by_name or None,
        "via": call.via or None,
        "editedArguments": call.edited_arguments,
    }


def suspended_run_body(run: AgentRun, calls: Iterable[tuple[str, PendingCall]]) -> ApprovalBody:
    """Return the body of a run that waits for people, with its waiting calls and those of its sub-agents by ID.

    The published client expects that a run without a conversation has no `threadId` and no `resourceId`.
    """
    conversation: ApprovalBody = {}
    if run.thread is not None:
        conversation = {"threadId": run.thread.key, "resourceId": run.thread.resource_key}
    return {
        "runId": run.pk,
        "status": run.status,
        **{name: value for name, value in conversation.items() if value},
        "suspendedAt": run.suspended_at,
        "toolCalls": [waiting_call_body(call_id, call) for call_id, call in calls],
    }


def waiting_call_body(call_id: str, call: PendingCall) -> ApprovalBody:
    body: ApprovalBody = {
        "toolCallId": call_id,
        "toolName": call.tool,
        "args": call.arguments,
        "requiresApproval": call.kind == PendingCall.Kind.APPROVAL,
    }
    return body if call.payload is None else body | {"suspendPayload": call.payload}
