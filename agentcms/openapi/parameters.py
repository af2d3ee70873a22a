"""Path and query parameters that several subjects share."""

from __future__ import annotations

from agentcms.openapi.json_schema import BOOLEAN, DATE_TIME, STRING
from agentcms.openapi.operations import EXAMPLE_UUID
from agentcms.wire.json_types import JSONObject
from runs_app.api.approvals import APPROVAL_STATES
from runs_app.models import AgentRun
from versions_app.exchange.records import ACTIONS

FLAG = {**BOOLEAN, "default": False}


def order_by_schema(*fields: str) -> JSONObject:
    return {
        "type": "object",
        "properties": {"field": {"enum": list(fields)}, "direction": {"enum": ["ASC", "DESC"]}},
    }


QUERY_PARAMETERS: dict[str, JSONObject] = {
    "page": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0}},
    "perPage": {"schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
    "agentOrder": {
        "name": "orderBy",
        "style": "deepObject",
        "explode": True,
        "schema": order_by_schema("createdAt", "updatedAt", "name"),
    },
    "versionOrder": {
        "name": "orderBy",
        "style": "deepObject",
        "explode": True,
        "schema": order_by_schema("versionNumber", "createdAt"),
    },
    "metadata": {"content": {"application/json": {"schema": {"type": "object"}}}},
    "status": {"schema": {"enum": ["published", "draft"], "default": "published"}},
    "agentStatus": {
        "name": "status",
        "schema": {"enum": ["published", "draft", "archived"], "default": "published"},
        "description": "Archived agents are listed by archived only, as they were live.",
    },
    "cursor": {"schema": STRING, "description": "Empty for the first page, then nextCursor; replaces page."},
    "versionNumber": {"schema": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}},
    "at": {"schema": DATE_TIME},
    "from": {"required": True, "schema": STRING, "description": "The ID of a version, live or head."},
    "to": {"required": True, "schema": STRING, "description": "The ID of a version, live or head."},
    "strict": {"schema": FLAG, "description": "Refuse what otherwise is a warning, such as unknown names."},
    **{name: {"schema": FLAG} for name in ("force", "dryRun", "publish", "partial", "children")},
    "runStatus": {"name": "status", "schema": {"enum": ["all", *AgentRun.Status.values], "default": "all"}},
    "approvalState": {"name": "state", "schema": {"enum": [*APPROVAL_STATES], "default": "open"}},
    "fromDate": {"schema": DATE_TIME},
    "toDate": {"schema": DATE_TIME},
    "recordAction": {"name": "action", "schema": {"enum": ["all", *ACTIONS], "default": "all"}},
    "limit": {"schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}},
    "offset": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0}},
    "after": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0}},
}

PARAMETER_DESCRIPTIONS: dict[str, JSONObject] = {
    "agentId": {"description": "The ID of the agent, percent-encoded.", "example": "concierge"},
    "deletedId": {"description": "The ID of the entry in the trash.", "example": EXAMPLE_UUID},
    "versionId": {"description": "The ID of a version of the agent.", "example": EXAMPLE_UUID},
    "jobId": {"description": "The ID of the job.", "example": EXAMPLE_UUID},
    "serverId": {"description": "The ID of the MCP server.", "example": "office"},
    "acpId": {"description": "The ID of the ACP agent.", "example": "coder"},
    "toolId": {"description": "The name of the tool.", "example": "search"},
    "limit": {"description": "How many servers are listed."},
    "offset": {"description": "How many servers are left out before the first."},
    "runId": {"description": "The ID of the run.", "example": EXAMPLE_UUID},
    "taskId": {
        "description": "The ID of a background task.",
        "example": "01a08e73-41c3-7aa3-8e7c-5e4f6a1b2c3d",
    },
    "approvalId": {"description": "The ID of the approval.", "example": EXAMPLE_UUID},
    "state": {"description": "Only calls in this state. `decided` is every state but open."},
    "threadId": {"description": "Only runs of this conversation."},
    "resourceId": {"description": "Only runs of conversations of this resource."},
    "fromDate": {"description": "Only runs that wait since this time or later."},
    "toDate": {"description": "Only runs that wait since this time or earlier."},
    "page": {"description": "The number of the page, from 0."},
    "perPage": {"description": "Entries on a page."},
    "orderBy": {"description": "The order of the entries."},
    "metadata": {"description": "Only agents whose metadata has these values, as JSON or as metadata[team]=a."},
    "status": {"description": "Which state: the live version, or the draft if there is one."},
    "ownerId": {"description": "Only of this owner. Blank is Shared."},
    "authorId": {"description": "Another name of ownerId."},
    "search": {"description": "Words and quoted phrases in the ID, name, description and instructions."},
    "versionNumber": {"description": "The number of a version, instead of its ID."},
    "at": {"description": "A time. The response is the version that was live then."},
    "force": {"description": "Act although other agents use this one as a sub-agent."},
    "dryRun": {"description": "Check the lines, and change nothing."},
    "publish": {"description": "Publish the changes of existing agents. Otherwise they become drafts."},
    "partial": {"description": "Leave out the schemas of tools."},
    "children": {"description": "Also the runs of sub-agents."},
    "kind": {"description": "Only jobs of this kind, such as export_agents."},
    "name": {"description": "The name of the file, for the messages of the versions."},
    "action": {"description": "Only lines with this outcome."},
    "after": {"description": "Only events with a higher number."},
}
