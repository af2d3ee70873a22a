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
from runs_app.models import PendingCall


def approval_schemas() -> dict[str, JSON]:
    return {
        "Approval": approval_schema(),
        "ApprovalPage": page_of("approvals", "Approval"),
        "SuspendedRun": suspended_run_schema(),
        "SuspendedRunPage": page_of("runs", "SuspendedRun"),
    }


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
