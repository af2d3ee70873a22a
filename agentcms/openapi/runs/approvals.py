"""Tool calls that wait for people, and the runs that wait for them, in the API document."""

from __future__ import annotations

from access_app.role import Role
from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    OBJECT,
    STRING,
    UUID_STRING,
    array_of,
    body_of,
    nullable,
    object_of,
    page_of,
    with_optional_warnings,
)
from agentcms.openapi.operations import APPROVAL, EXAMPLE_UUID, PAGING, RUNNABLE_AGENT, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from runs_app.approvals.decisions import Verdict
from runs_app.models import PendingCall


def decision(
    route: str, operation_id: str, summary: str, response: str = "Events", body: str = "CallDecision"
) -> Operation:
    """Return the operation of a route that decides a waiting tool call of a run of an agent."""
    errors = (409, 410, 422, 424) if response == "Generated" else (409, 410, 422)
    path = f"{RUNNABLE_AGENT}/{route}"
    return Operation("post", path, operation_id, summary, response, body, ("strict",), errors=errors)


APPROVAL_OPERATIONS = (
    decision("approve-tool-call", "approveToolCall", "Approve a tool call and stream what follows"),
    decision("decline-tool-call", "declineToolCall", "Decline a tool call and stream what follows"),
    decision(
        "approve-tool-call-generate",
        "approveToolCallGenerate",
        "Approve a tool call and wait for the answer",
        "Generated",
    ),
    decision(
        "decline-tool-call-generate",
        "declineToolCallGenerate",
        "Decline a tool call and wait for the answer",
        "Generated",
    ),
    decision(
        "resume-stream", "resumeStream", "Send data to a tool that waits, and stream what follows", body="Resume"
    ),
    decision(
        "resume-stream-until-idle",
        "resumeStreamUntilIdle",
        "Send data to a tool that waits, and stream what follows and the background tasks",
        body="Resume",
    ),
    decision(
        "send-tool-approval",
        "sendToolApproval",
        "Decide a tool call of a conversation",
        "AcceptedDecision",
        "ThreadDecision",
    ),
    decision("approve-network-tool-call", "approveNetworkToolCall", "Approve the only waiting call of a network"),
    decision("decline-network-tool-call", "declineNetworkToolCall", "Decline the only waiting call of a network"),
    decision("resume-network", "resumeNetwork", "Send data to the only waiting call of a network", body="Resume"),
    Operation(
        "get",
        f"{RUNNABLE_AGENT}/suspended-runs",
        "listSuspendedRuns",
        "List the runs of an agent that wait for people",
        "SuspendedRunPage",
        query=(*PAGING, "threadId", "resourceId", "fromDate", "toDate", "strict"),
    ),
    Operation(
        "get",
        "/api/approvals",
        "listApprovals",
        "List the tool calls that wait for people, or that were decided",
        "ApprovalPage",
        query=(*PAGING, "approvalState", "agentId", "strict"),
    ),
    Operation("get", APPROVAL, "getApproval", "Get a tool call that waits or was decided", "Approval"),
    Operation(
        "post",
        APPROVAL,
        "decideApproval",
        "Decide a tool call",
        "Approval",
        "ApprovalDecision",
        ("strict",),
        errors=(409, 410, 422),
    ),
)
APPROVAL_DESCRIPTIONS: dict[str, str] = {
    "approveToolCall": "Needs the role of the call. The stream repeats the decided call and then continues.",
    "declineToolCall": "Needs the role of the call. The model reads the reason, and the stream has its answer.",
    "approveToolCallGenerate": "Needs the role of the call. The response is that of generate.",
    "declineToolCallGenerate": "Needs the role of the call. The response is that of generate.",
    "resumeStream": "The data must fit resumeSchema. For a call that waits for approval, send {approved, reason?}.",
    "resumeStreamUntilIdle": "As resumeStream. The stream stays open until the background tasks have ended.",
    "sendToolApproval": "Finds the call by threadId and resourceId. The response does not wait for the run.",
    "approveNetworkToolCall": "A 409 names the calls if the run waits for several.",
    "declineNetworkToolCall": "A 409 names the calls if the run waits for several.",
    "resumeNetwork": "A 409 names the calls if the run waits for several.",
    "listSuspendedRuns": "Runs that you may read, the latest first, each with the calls that wait for a decision.",
    "listApprovals": "Calls of runs that you may read. Waiting ones: oldest first. Decided ones: latest first.",
    "getApproval": "What waits, for how long, and who may decide it. Or who decided it, and when.",
    "decideApproval": "Needs the role of the call. The same decision by the same user again is a 200. A 409 names who "
    "was faster, or says that the arguments are not those of mark.",
}
APPROVAL_PARAMETERS: dict[str, dict[str, JSONObject]] = {
    "listApprovals": {"agentId": {"description": "Only calls of runs of this agent."}},
}
APPROVAL_EXAMPLES: dict[str, JSONObject] = {
    "approveToolCall": {"runId": EXAMPLE_UUID, "toolCallId": "call_1"},
    "declineToolCall": {"runId": EXAMPLE_UUID, "toolCallId": "call_1", "reason": "The amount is too high."},
    "approveToolCallGenerate": {"runId": EXAMPLE_UUID, "toolCallId": "call_1"},
    "declineToolCallGenerate": {"runId": EXAMPLE_UUID, "toolCallId": "call_1", "reason": "The amount is too high."},
    "resumeStream": {"runId": EXAMPLE_UUID, "resumeData": {"size": "M"}},
    "resumeStreamUntilIdle": {"runId": EXAMPLE_UUID, "resumeData": {"size": "M"}},
    "sendToolApproval": {"resourceId": "ann", "threadId": "t1", "toolCallId": "call_1", "approved": True},
    "approveNetworkToolCall": {"runId": EXAMPLE_UUID},
    "declineNetworkToolCall": {"runId": EXAMPLE_UUID, "reason": "The amount is too high."},
    "resumeNetwork": {"runId": EXAMPLE_UUID, "resumeData": {"size": "M"}},
    "decideApproval": {"decision": "decline", "reason": "The amount is too high."},
}


def approval_schemas() -> dict[str, JSONObject]:
    return {
        "Approval": with_optional_warnings(approval_schema()),
        "ApprovalPage": page_of("approvals", "Approval"),
        "CallDecision": body_of(
            {"runId": UUID_STRING}, toolCallId=STRING, reason=STRING, arguments=OBJECT, mark=STRING
        ),
        "Resume": body_of({"runId": UUID_STRING, "resumeData": ANY}, toolCallId=STRING, mark=STRING),
        "ThreadDecision": body_of(
            {"resourceId": STRING, "threadId": STRING, "toolCallId": STRING, "approved": BOOLEAN},
            reason=STRING,
            resumeData=ANY,
            mark=STRING,
        ),
        "ApprovalDecision": body_of(
            {"decision": {"enum": Verdict.values}}, reason=STRING, arguments=OBJECT, resumeData=ANY, mark=STRING
        ),
        "AcceptedDecision": with_optional_warnings(object_of(accepted=BOOLEAN, runId=UUID_STRING, toolCallId=STRING)),
        "SuspendedRun": suspended_run_schema(),
        "SuspendedRunPage": page_of("runs", "SuspendedRun"),
    }


def approval_schema() -> JSONObject:
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


def suspended_run_schema() -> JSONObject:
    call = object_of(toolCallId=STRING, toolName=STRING, args=ANY, requiresApproval=BOOLEAN)
    call["properties"] |= {"suspendPayload": ANY}
    run = object_of(runId=UUID_STRING, status={"enum": ["suspended"]}, suspendedAt=DATE_TIME, toolCalls=array_of(call))
    run["properties"] |= {"threadId": STRING, "resourceId": STRING}
    return run


APPROVAL_FIELDS: dict[str, str] = {
    "Approval.id": "The ID of the approval.",
    "Approval.runId": "The run whose agent called the tool. Null if it is unknown.",
    "Approval.state": "Whether the call waits, or what was decided.",
    "Approval.kind": "Whether the call waits for an approval, or the tool has suspended itself and waits for data.",
    "Approval.reason": "The reason of the decision.",
    "Approval.via": "Where it was decided.",
    "Approval.createdAt": "Since when it waits.",
    "Approval.role": "The lowest role that may decide.",
    "Approval.requestedBy": "Who started the run.",
    "Approval.expiresAt": "When it is declined if nobody decides.",
    "SuspendedRun.status": "Always suspended.",
    "CallDecision.toolCallId": "The call. It may be left out if the run waits for one call only.",
    "Resume.toolCallId": "The call. It may be left out if the run waits for one call only.",
    "CallDecision.reason": "Why. The model reads the reason of a refusal.",
    "ApprovalDecision.reason": "Why. The model reads the reason of a refusal.",
    "ApprovalDecision.mark": "That of the approval that you read. If it has changed, nothing is decided.",
    "CallDecision.mark": "That of the approval that you read. If it has changed, nothing is decided.",
    "Resume.mark": "That of the approval that you read. If it has changed, nothing is decided.",
    "ThreadDecision.resourceId": "The resource of the conversation.",
}


APPROVAL_SECTION = ApiSection(
    APPROVAL_OPERATIONS,
    {"/api/approvals": "Approvals", "": "Running agents"},
    approval_schemas,
    descriptions=APPROVAL_DESCRIPTIONS,
    own_parameters=APPROVAL_PARAMETERS,
    page_sizes={"listApprovals": 50},
    examples=APPROVAL_EXAMPLES,
    fields=APPROVAL_FIELDS,
)
