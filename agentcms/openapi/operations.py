"""Every operation of the API: what it takes and what it answers with."""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    """One method of one path: what it takes and what it answers with."""

    method: str
    path: str
    id: str
    summary: str
    answer: str
    body: str = ""
    query: tuple[str, ...] = ()
    status: int = 200
    errors: tuple[int, ...] = ()


AGENT = "/api/stored/agents/{agentId}"
VERSION = f"{AGENT}/versions/{{versionId}}"
RUNNABLE_AGENT = "/api/agents/{agentId}"
RUN = "/api/runs/{runId}"
VERSION_PARAMETERS = ("status", "versionId", "versionNumber")
PAGING = ("page", "perPage")

OPERATIONS = (
    Operation(
        "get",
        "/api/stored/agents",
        "listAgents",
        "A page of agents",
        "AgentPage",
        query=(*PAGING, "agentOrder", "metadata", "status", "ownerId", "authorId", "search", "cursor"),
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
    Operation("get", AGENT, "getAgent", "An agent, resolved", "Agent", query=VERSION_PARAMETERS),
    Operation(
        "patch", AGENT, "updateAgent", "Change the named fields", "Agent", "AgentChange", ("strict",), errors=(412,)
    ),
    Operation(
        "delete", AGENT, "deleteAgent", "Delete an agent with its history", "Done", query=("force",), errors=(409, 412)
    ),
    Operation(
        "post", f"{AGENT}/duplicate", "duplicateAgent", "Copy an agent", "Agent", "Duplicate", ("strict",), 201, (409,)
    ),
    Operation("post", f"{AGENT}/discard-draft", "discardDraft", "Return the head to live", "Agent", errors=(412,)),
    Operation("get", f"{AGENT}/dependents", "listDependents", "Agents that name this one", "Dependents"),
    Operation("get", f"{AGENT}/activations", "listActivations", "Moves of live", "Activations", query=(*PAGING, "at")),
    Operation(
        "post",
        f"{AGENT}/activations/undo",
        "undoActivation",
        "Back to what was live before",
        "Agent",
        "Undo",
        ("strict",),
        errors=(409, 412),
    ),
    Operation(
        "get", f"{AGENT}/versions", "listVersions", "The history", "VersionPage", query=(*PAGING, "versionOrder")
    ),
    Operation(
        "post",
        f"{AGENT}/versions",
        "createVersion",
        "A snapshot by hand",
        "Version",
        "VersionDescription",
        (),
        201,
        (412,),
    ),
    Operation(
        "get", f"{AGENT}/versions/compare", "compareVersions", "What differs", "Comparison", query=("from", "to")
    ),
    Operation("get", VERSION, "getVersion", "One version", "Version"),
    Operation(
        "patch", VERSION, "updateVersion", "Name, message and pin", "Version", "VersionDescription", errors=(412,)
    ),
    Operation("delete", VERSION, "deleteVersion", "Delete a version", "Done", errors=(412,)),
    Operation(
        "post",
        f"{VERSION}/activate",
        "activateVersion",
        "Make it live",
        "Activated",
        "Said",
        ("strict",),
        errors=(412,),
    ),
    Operation(
        "post",
        f"{VERSION}/restore",
        "restoreVersion",
        "Its picture as a new version",
        "Version",
        "Said",
        ("strict",),
        errors=(412,),
    ),
    Operation("post", "/api/stored/agent-export", "exportAgents", "Export as JSON Lines", "Job", status=202),
    Operation(
        "post",
        "/api/stored/agent-import",
        "importAgents",
        "Import JSON Lines",
        "Job",
        "Lines",
        ("dryRun", "publish", "strict", "name"),
        202,
        (413,),
    ),
    Operation("get", "/api/stored/agent-schema", "getAgentSchema", "The JSON Schema of an agent", "Anything"),
    Operation("get", "/api/jobs/{jobId}", "getJob", "How far a job is", "Job"),
    Operation("get", "/api/jobs/{jobId}/file", "getJobFile", "What an export wrote", "Lines"),
    Operation("get", "/api/agents", "listRunnableAgents", "Agents by id", "Runnables", query=(*PAGING, "partial")),
    Operation("get", "/api/agents/providers", "listProviders", "Providers of models", "Providers"),
    Operation(
        "get", RUNNABLE_AGENT, "getRunnableAgent", "An agent with what it uses", "Runnable", query=VERSION_PARAMETERS
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/generate",
        "generate",
        "Ask and wait",
        "Generated",
        "Call",
        VERSION_PARAMETERS,
        errors=(409, 422, 424),
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/stream",
        "stream",
        "Ask and read along",
        "Events",
        "Call",
        VERSION_PARAMETERS,
        errors=(409, 422),
    ),
    Operation("post", f"{RUNNABLE_AGENT}/observe", "observe", "Read a run again", "Events", "Observe"),
    Operation(
        "get",
        "/api/runs",
        "listRuns",
        "Runs, newest first",
        "RunPage",
        query=(*PAGING, "agentId", "runStatus", "children"),
    ),
    Operation("get", RUN, "getRun", "A run", "Run"),
    Operation("get", f"{RUN}/events", "listEvents", "Its events so far", "EventPage", query=("after", "perPage")),
    Operation("get", f"{RUN}/stream", "followRun", "Its events as they come", "Events", query=("after",)),
    Operation("post", f"{RUN}/cancel", "cancelRun", "Stop it", "Run"),
    Operation("get", "/api/schema", "getSchema", "This description", "Anything"),
)
