"""The operations of the API: their parameters, bodies and responses."""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    """A method of a path. `body` and `response` name schemas; `errors` lists statuses beyond the common ones."""

    method: str
    path: str
    id: str
    summary: str
    response: str
    body: str = ""
    query: tuple[str, ...] = ()
    status: int = 200
    errors: tuple[int, ...] = ()


AGENT = "/api/stored/agents/{agentId}"
DELETED_AGENT = "/api/stored/deleted-agents/{deletedId}"
VERSION = f"{AGENT}/versions/{{versionId}}"
RUNNABLE_AGENT = "/api/agents/{agentId}"
RUN = "/api/runs/{runId}"
APPROVAL = "/api/approvals/{approvalId}"
JOB = "/api/jobs/{jobId}"
MCP_CLIENT = "/api/stored/mcp-clients/{serverId}"
MCP_SERVER = "/api/mcp/{serverId}"
MCP_TOOL = f"{MCP_SERVER}/tools/{{toolId}}"
VERSION_PARAMETERS = ("status", "versionId", "versionNumber")
PAGING = ("page", "perPage")


def decision(
    route: str, operation_id: str, summary: str, response: str = "Events", body: str = "CallDecision"
) -> Operation:
    """Return the operation of a route that decides a waiting tool call of a run of an agent."""
    errors = (409, 410, 422, 424) if response == "Generated" else (409, 410, 422)
    return Operation("post", f"{RUNNABLE_AGENT}/{route}", operation_id, summary, response, body, errors=errors)


OPERATIONS = (
    Operation(
        "get",
        "/api/stored/agents",
        "listAgents",
        "List agents",
        "AgentPage",
        query=(*PAGING, "agentOrder", "metadata", "agentStatus", "ownerId", "authorId", "search", "cursor", "strict"),
    ),
    Operation(
        "post",
        "/api/stored/agents",
        "createAgent",
        "Create an agent",
        "Agent",
        "AgentCreate",
        ("strict",),
        201,
        (409,),
    ),
    Operation(
        "get",
        AGENT,
        "getAgent",
        "Get an agent",
        "Agent",
        query=("agentStatus", "versionId", "versionNumber", "strict"),
    ),
    Operation(
        "patch",
        AGENT,
        "updateAgent",
        "Change the given fields",
        "Agent",
        "AgentChange",
        ("force", "strict"),
        errors=(409, 412),
    ),
    Operation(
        "delete",
        AGENT,
        "deleteAgent",
        "Move an agent with all versions to the trash",
        "Done",
        query=("force",),
        errors=(409, 412),
    ),
    Operation(
        "post",
        f"{AGENT}/archive",
        "archiveAgent",
        "Archive an agent: leave it out of lists and do not run it",
        "Agent",
        query=("force", "strict"),
        errors=(409, 412),
    ),
    Operation(
        "post", f"{AGENT}/unarchive", "unarchiveAgent", "Unarchive an agent", "Agent", query=("strict",), errors=(412,)
    ),
    Operation(
        "get",
        "/api/stored/deleted-agents",
        "listDeletedAgents",
        "List the agents in the trash",
        "DeletedAgentPage",
        query=(*PAGING, "ownerId", "agentId", "strict"),
    ),
    Operation("get", DELETED_AGENT, "getDeletedAgent", "Get an agent in the trash", "DeletedAgent"),
    Operation("delete", DELETED_AGENT, "purgeDeletedAgent", "Delete an agent in the trash for good", "Done"),
    Operation(
        "post",
        f"{DELETED_AGENT}/restore",
        "restoreDeletedAgent",
        "Restore an agent from the trash with the same versions",
        "Agent",
        "RestoreOptions",
        ("strict",),
        201,
        (409,),
    ),
    Operation(
        "post",
        f"{AGENT}/duplicate",
        "duplicateAgent",
        "Copy an agent to a new one",
        "Agent",
        "Duplicate",
        ("strict",),
        201,
        (409,),
    ),
    Operation(
        "post",
        f"{AGENT}/discard-draft",
        "discardDraft",
        "Discard the draft: set the head back to the live version",
        "Agent",
        query=("strict",),
        errors=(412,),
    ),
    Operation(
        "get",
        f"{AGENT}/dependents",
        "listDependents",
        "List the agents that use this one as a sub-agent",
        "Dependents",
    ),
    Operation(
        "get",
        f"{AGENT}/activations",
        "listActivations",
        "List the live history, or get the live version at a time",
        "Activations",
        query=(*PAGING, "at", "strict"),
    ),
    Operation(
        "post",
        f"{AGENT}/activations/undo",
        "undoActivation",
        "Roll back to the previously live version",
        "Agent",
        "Undo",
        ("strict",),
        errors=(409, 412),
    ),
    Operation(
        "get",
        f"{AGENT}/versions",
        "listVersions",
        "List versions",
        "VersionPage",
        query=(*PAGING, "versionOrder", "strict"),
    ),
    Operation(
        "post",
        f"{AGENT}/versions",
        "createVersion",
        "Save a snapshot of the head as a version",
        "Version",
        "VersionDescription",
        ("strict",),
        201,
        (412,),
    ),
    Operation(
        "get",
        f"{AGENT}/versions/compare",
        "compareVersions",
        "Compare two versions",
        "Comparison",
        query=("from", "to"),
    ),
    Operation("get", VERSION, "getVersion", "Get a version", "Version"),
    Operation(
        "patch",
        VERSION,
        "updateVersion",
        "Change the name, message and pin of a version",
        "Version",
        "VersionDescription",
        ("strict",),
        errors=(412,),
    ),
    Operation("delete", VERSION, "deleteVersion", "Delete a version", "Done", errors=(412,)),
    Operation(
        "post",
        f"{VERSION}/activate",
        "activateVersion",
        "Publish a version",
        "Activated",
        "ChangeOptions",
        ("strict",),
        errors=(412,),
    ),
    Operation(
        "post",
        f"{VERSION}/restore",
        "restoreVersion",
        "Restore a version: create a new one with its content",
        "Version",
        "ChangeOptions",
        ("strict",),
        errors=(412,),
    ),
    Operation("post", "/api/stored/agent-export", "exportAgents", "Export agents as JSON Lines", "Job", status=202),
    Operation(
        "post",
        "/api/stored/agent-import",
        "importAgents",
        "Import agents from JSON Lines",
        "Job",
        "Lines",
        ("dryRun", "publish", "strict", "name"),
        202,
        (413,),
    ),
    Operation("get", "/api/stored/agent-schema", "getAgentSchema", "Get the JSON Schema of an agent", "Anything"),
    Operation(
        "get",
        "/api/jobs",
        "listJobs",
        "List the jobs that you requested, newest first",
        "JobPage",
        query=(*PAGING, "kind", "strict"),
    ),
    Operation("get", JOB, "getJob", "Get the progress and result of a job", "Job"),
    Operation("delete", JOB, "deleteJob", "Delete a job with its file and report", "Done", errors=(409,)),
    Operation("get", f"{JOB}/file", "getJobFile", "Download the file of an export", "Lines"),
    Operation(
        "get",
        f"{JOB}/records",
        "listJobRecords",
        "List the outcomes of the records of an import",
        "RecordPage",
        query=(*PAGING, "recordAction", "strict"),
    ),
    Operation(
        "get",
        "/api/agents",
        "listRunnableAgents",
        "List the agents that can run, by ID",
        "Runnables",
        query=(*PAGING, "partial", "strict"),
    ),
    Operation("get", "/api/agents/providers", "listProviders", "List model providers", "Providers"),
    Operation(
        "get",
        RUNNABLE_AGENT,
        "getRunnableAgent",
        "Get an agent with its tools, workflows and sub-agents",
        "Runnable",
        query=VERSION_PARAMETERS,
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/generate",
        "generate",
        "Run an agent and wait for the answer",
        "Generated",
        "Call",
        (*VERSION_PARAMETERS, "strict"),
        errors=(409, 422, 424),
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/stream",
        "stream",
        "Run an agent and stream its events",
        "Events",
        "Call",
        (*VERSION_PARAMETERS, "strict"),
        errors=(409, 422),
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/observe",
        "observe",
        "Stream the events of a run from an offset",
        "Events",
        "Observe",
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/stream-until-idle",
        "streamUntilIdle",
        "Run an agent and stream its events, like stream",
        "Events",
        "Call",
        (*VERSION_PARAMETERS, "strict"),
        errors=(409, 422),
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/recover",
        "recover",
        "Have a durable run continued and stream its events",
        "Events",
        "Recover",
    ),
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
    decision("resume-stream-until-idle", "resumeStreamUntilIdle", "The same as resume-stream", body="Resume"),
    decision(
        "send-tool-approval",
        "sendToolApproval",
        "Decide a tool call of a conversation",
        "AcceptedDecision",
        "ThreadDecision",
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/network",
        "network",
        "Run an agent and stream the chunks of a network",
        "Events",
        "Call",
        (*VERSION_PARAMETERS, "strict"),
        errors=(409, 422),
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
        errors=(409, 410, 422),
    ),
    Operation(
        "get",
        "/api/runs",
        "listRuns",
        "List runs, newest first",
        "RunPage",
        query=(*PAGING, "agentId", "runStatus", "children", "strict"),
    ),
    Operation("get", RUN, "getRun", "Get a run", "Run"),
    Operation(
        "get",
        f"{RUN}/events",
        "listEvents",
        "List the events of a run",
        "EventPage",
        query=("after", "perPage", "strict"),
    ),
    Operation(
        "get",
        f"{RUN}/steps",
        "listSteps",
        "List the steps of a durable run",
        "StepPage",
        query=(*PAGING, "strict"),
    ),
    Operation("get", f"{RUN}/stream", "followRun", "Stream the events of a run", "Events", query=("after",)),
    Operation("post", f"{RUN}/cancel", "cancelRun", "Cancel a run", "Run"),
    Operation(
        "get",
        "/api/stored/mcp-clients",
        "listMcpClients",
        "List MCP servers with their configuration",
        "McpClientPage",
        query=(*PAGING, "ownerId", "strict"),
    ),
    Operation(
        "post",
        "/api/stored/mcp-clients",
        "createMcpClient",
        "Add an MCP server",
        "McpClient",
        "McpClientCreate",
        status=201,
        errors=(409, 422),
    ),
    Operation("get", MCP_CLIENT, "getMcpClient", "Get an MCP server with its configuration", "McpClient"),
    Operation(
        "patch", MCP_CLIENT, "updateMcpClient", "Change an MCP server", "McpClient", "McpClientChange", errors=(422,)
    ),
    Operation("delete", MCP_CLIENT, "deleteMcpClient", "Delete an MCP server with its versions", "Done"),
    Operation(
        "get",
        f"{MCP_CLIENT}/versions",
        "listMcpClientVersions",
        "List the versions of an MCP server",
        "McpClientVersionPage",
        query=(*PAGING, "strict"),
    ),
    Operation(
        "get",
        "/api/mcp/v0/servers",
        "listMcpServers",
        "List the enabled MCP servers",
        "McpServers",
        query=("limit", "offset", "strict"),
    ),
    Operation("get", "/api/mcp/v0/servers/{serverId}", "getMcpServer", "Get an MCP server", "McpServer"),
    Operation("get", f"{MCP_SERVER}/tools", "listMcpTools", "List the tools of an MCP server", "McpTools"),
    Operation("get", MCP_TOOL, "getMcpTool", "Get a tool with its schema", "McpTool"),
    Operation(
        "post",
        f"{MCP_TOOL}/execute",
        "executeMcpTool",
        "Call a tool",
        "McpResult",
        "McpCall",
        errors=(409, 424),
    ),
    Operation(
        "post",
        f"{MCP_TOOL}/accept",
        "acceptMcpTool",
        "Accept the changed definition of a tool",
        "McpClient",
        "McpAccept",
        errors=(422,),
    ),
    Operation(
        "post", f"{MCP_SERVER}/refresh", "refreshMcpServer", "List the tools of an MCP server anew", "Job", status=202
    ),
    Operation(
        "get",
        f"{MCP_SERVER}/resources",
        "listMcpResources",
        "Not supported: list resources",
        "Anything",
        errors=(501,),
    ),
    Operation(
        "post",
        f"{MCP_SERVER}/resources/read",
        "readMcpResource",
        "Not supported: read a resource",
        "Anything",
        errors=(501,),
    ),
    Operation("get", "/api/schema", "getSchema", "Get this OpenAPI document", "Anything"),
)
