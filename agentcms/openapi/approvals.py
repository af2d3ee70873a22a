"""The schemas of tool calls that wait for people, and of the runs that wait for them."""

from __future__ import annotations

from access_app.role import Role
from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    JSON,
    OBJECT,
    STRING,
    UUID_STRING,
    array_of,
    nullable,
    object_of,
    page_of,
)
from runs_app.approvals.decisions import Verdict
from runs_app.models import PendingCall


def approval_schemas() -> dict[str, JSON]:
    return {
        "Approval": approval_schema(),
        "ApprovalPage": page_of("approvals", "Approval"),
        "CallDecision": body_of({"runId": UUID_STRING}, toolCallId=STRING, reason=STRING, arguments=OBJECT),
        "Resume": body_of({"runId": UUID_STRING, "resumeData": ANY}, toolCallId=STRING),
        "ThreadDecision": body_of(
            {"resourceId": STRING, "threadId": STRING, "toolCallId": STRING, "approved": BOOLEAN}, resumeData=ANY
        ),
        "ApprovalDecision": body_of(
            {"decision": {"enum": Verdict.values}}, reason=STRING, arguments=OBJECT, resumeData=ANY, mark=STRING
        ),
        "AcceptedDecision": object_of(accepted=BOOLEAN, runId=UUID_STRING, toolCallId=STRING),
        "SuspendedRun": suspended_run_schema(),
        "SuspendedRunPage": page_of("runs", "SuspendedRun"),
    }


def body_of(required: JSON, **optional: JSON) -> JSON:
    """Return the schema of a body with required and optional members."""
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def approval_schema() -> JSON:
    return object_of(
        id=UUID_STRING,
        runId=nullable(UUID_STRING),
        rootRunId=UUID_STRING,
        agentId=STRING,
        toolCallId=STRING,
        toolName=STRING,
        args=ANY,
        kind={"enum": [PendingCall.Kind.APPROVAL.value, PendingCall.Kind.SUSPEND.value]},
        state={"enum": PendingCall.State.values},
        role={"enum": Role.values},
        fourEyes=BOOLEAN,
        mark=STRING,
        requestedBy=nullable(STRING),
        reason=nullable(STRING),
        resumeSchema=nullable(OBJECT),
        suspendPayload=ANY,
        createdAt=DATE_TIME,
        expiresAt=nullable(DATE_TIME),
        decidedAt=nullable(DATE_TIME),
        decidedBy=nullable(STRING),
        via=nullable({"enum": PendingCall.Via.values}),
        editedArguments=ANY,
    )


def suspended_run_schema() -> JSON:
    call = object_of(toolCallId=STRING, toolName=STRING, args=ANY, requiresApproval=BOOLEAN)
    call["properties"] |= {"suspendPayload": ANY}
    run = object_of(runId=UUID_STRING, status={"enum": ["suspended"]}, suspendedAt=DATE_TIME, toolCalls=array_of(call))
    run["properties"] |= {"threadId": STRING, "resourceId": STRING}
    return run
