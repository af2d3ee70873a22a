"""An operation of the API, and the paths that several subjects share."""

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
VERSION_SELECTION = ("status", "versionId", "versionNumber")
PAGING = ("page", "perPage")
EXAMPLE_UUID = "0198a6c2-7c1e-7d3a-9f00-5b1f8d2c4e6a"
