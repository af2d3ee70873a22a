"""Agents in the API document: the stored ones, their copies and the trash."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    STRING,
    UUID_STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
    with_optional_warnings,
)
from agentcms.openapi.operations import AGENT, DELETED_AGENT, PAGING, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from agents_app.api.schemas import ChangeNote, ChangeOptions, DuplicateOptions, Identity, Ownership
from agents_app.configuration.schema import ADDED_FIELDS, WIRE_NAMES, AgentConfig, AgentCreate, as_partial
from versions_app.api.schemas import RestoreOptions

AGENT_OPERATIONS = (
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
        errors=(409, 412, 422),
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
        "get",
        f"{AGENT}/dependents",
        "listDependents",
        "List the agents that use this one as a sub-agent",
        "Dependents",
    ),
    Operation("get", "/api/stored/agent-schema", "getAgentSchema", "Get the JSON Schema of an agent", "Anything"),
    Operation("get", "/api/schema", "getSchema", "Get this OpenAPI document", "Anything"),
)
AGENT_DESCRIPTIONS: dict[str, str] = {
    "listAgents": "Returns the agents that you may see, as pages or by cursor, as they are live or as drafts.",
    "createAgent": "Needs the editor role for the owner. The agent starts with version 1, which is live at once.",
    "getAgent": "Returns the live version. Send If-None-Match to get a 304 while nothing changed.",
    "updateAgent": "Records a version with the given fields and publishes it, which needs the publisher role. With "
    "autoPublish false it saves a draft, which needs the editor role. Nothing is recorded if nothing changes. "
    "Send If-Match to reject the change if somebody else saved in the meantime.",
    "deleteAgent": "Needs the publisher role. Runs are deleted at once, conversations stay. A 409 names the agents "
    "that use this one as a sub-agent.",
    "archiveAgent": "Needs the publisher role. Versions, history and runs stay.",
    "unarchiveAgent": "Needs the publisher role. The agent is in lists again and can run.",
    "listDeletedAgents": "Deleted agents are kept for TRASH_DAYS days with all versions.",
    "getDeletedAgent": "Returns an entry of the trash, without its versions.",
    "purgeDeletedAgent": "Needs the manager role. The versions are deleted too. This cannot be undone.",
    "restoreDeletedAgent": "Needs the publisher role. Live and head are as they were. Runs are not restored.",
    "duplicateAgent": "Needs the editor role for the new owner. Copies the live version by default. The copy has a "
    "history of its own.",
    "listDependents": "Names the agents that you may see and counts the others.",
    "getAgentSchema": "For editors and generators of agents.",
    "getSchema": "This document, for generators of clients.",
}
AGENT_PARAMETERS: dict[str, dict[str, JSONObject]] = {
    "listAgents": {"orderBy": {"default": {"field": "createdAt", "direction": "DESC"}}},
    "listDeletedAgents": {"agentId": {"description": "Only agents that had this ID."}},
}
AGENT_EXAMPLES: dict[str, JSONObject] = {
    "createAgent": {
        "id": "greeter",
        "name": "Greeter",
        "instructions": "Greet the guest by name.",
        "model": {"provider": "demo", "name": "echo"},
    },
    "updateAgent": {"instructions": "Greet the guest in one sentence.", "changeMessage": "Shorten the greeting"},
    "restoreDeletedAgent": {"id": "greeter-2"},
    "duplicateAgent": {"id": "night-greeter", "name": "Night greeter"},
}


def agent_schemas() -> dict[str, JSONObject]:
    cursor_page = object_of(
        agents=array_of(ref("Agent")), perPage=INTEGER, hasMore=BOOLEAN, nextCursor=nullable(STRING)
    )
    return {
        "Anything": ANY,
        "Error": error_schema(),
        "Done": with_optional_warnings(object_of(success=BOOLEAN, message=STRING)),
        "Warning": object_of(field=STRING, key=STRING, message=STRING),
        "Dependents": object_of(
            dependents=array_of(object_of(id=STRING, name=STRING, ownerId=STRING)),
            total=INTEGER,
            hidden=INTEGER,
            hiddenCount=INTEGER,
        ),
        "AgentPage": {"anyOf": [page_of("agents", "Agent"), cursor_page]},
        "DeletedAgent": deleted_agent_schema(),
        "DeletedAgentPage": page_of("deletedAgents", "DeletedAgent"),
    }


def error_schema() -> JSONObject:
    error = object_of(error=STRING, code=STRING)
    error["properties"] |= {
        "issues": array_of(object_of(field=STRING, message=STRING)),
        "changedFields": {**array_of(STRING), "description": "Of a 412: the fields that changed since."},
        "touching": {**array_of(STRING), "description": "Of a 412: the paths at which both changes touch."},
    }
    return error


def agent_schema(configuration: JSONObject) -> JSONObject:
    fields = {
        name: {key: value for key, value in schema.items() if key != "default"}
        for name, schema in configuration["properties"].items()
    }
    schema = object_of(
        id=STRING,
        **fields,
        ownerId=STRING,
        activeVersionId=UUID_STRING,
        activeVersionNumber=INTEGER,
        headVersionId=UUID_STRING,
        headVersionNumber=INTEGER,
        resolvedVersionId=UUID_STRING,
        hasDraft=BOOLEAN,
        revision=INTEGER,
        createdAt=DATE_TIME,
        updatedAt=DATE_TIME,
        archivedAt=nullable(DATE_TIME),
        status={"enum": ["published", "archived"]},
        warnings=array_of(ref("Warning")),
    )
    added = {WIRE_NAMES[name] for name in ADDED_FIELDS}  # a response has them only if they are set
    return {**schema, "required": [name for name in schema["required"] if name not in added]}


def deleted_agent_schema() -> JSONObject:
    return object_of(
        id=UUID_STRING,
        agentId=STRING,
        name=STRING,
        ownerId=STRING,
        liveVersionNumber=nullable(INTEGER),
        versionCount=INTEGER,
        deletedAt=DATE_TIME,
        deletedBy=nullable(STRING),
        removedAt=DATE_TIME,
    )


AGENT_FIELDS: dict[str, str] = {
    "Dependents.id": "The ID of an agent.",
    "Dependents.total": "The number of agents that use this one.",
    "RestoreOptions.id": "Another ID, needed if an agent has the old one.",
    "Duplicate.id": "The ID of the copy.",
    "Duplicate.name": "The name of the copy. The default is the name of the original.",
    "Duplicate.versionId": "The version to copy. The default is the live version.",
    "ModelChoice.name": "The name of the model. Other settings of the model may be next to it.",
    "ModelChoice.provider": "The key of a model provider, such as openai or demo.",
    "CountSampling.type": "Score one in every count answers.",
    "RatioSampling.type": "Score a share of the answers.",
    "Agent.name": "The name that people see.",
    "Agent.status": "archived, or else published: every agent has a live version.",
    "AgentCreate.name": "The name that people see.",
    "AgentChange.name": "The name that people see.",
    "AgentPage.agents": "The agents of the page.",
    "Configuration.name": "The name that people see.",
}


AGENT_SECTION = ApiSection(
    AGENT_OPERATIONS,
    {"/deleted-agents": "Trash", "schema": "Descriptions of the API", "": "Agents"},
    agent_schemas,
    bodies={
        "AgentCreate": (AgentCreate, ChangeNote),
        "AgentChange": (as_partial(AgentConfig), Ownership, ChangeOptions),
        "Duplicate": (Identity, DuplicateOptions, Ownership),
        "ChangeOptions": ChangeOptions,
        "RestoreOptions": RestoreOptions,
        "Configuration": AgentConfig,
    },
    descriptions=AGENT_DESCRIPTIONS,
    own_parameters=AGENT_PARAMETERS,
    examples=AGENT_EXAMPLES,
    fields=AGENT_FIELDS,
)
