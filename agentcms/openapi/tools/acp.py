"""ACP agents in the API document."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    OBJECT,
    STRING,
    nullable,
    object_of,
    page_of,
    ref,
    with_optional_warnings,
)
from agentcms.openapi.operations import PAGING, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import as_partial
from tools_app.api.acp_schemas import AcpAgentBody
from tools_app.models import AcpAgent

ACP_AGENTS = "/api/stored/acp-agents"
ACP_AGENT = f"{ACP_AGENTS}/{{acpId}}"
ACP_VERSION = f"{ACP_AGENT}/versions/{{number}}"
ACP_OPERATIONS = (
    Operation("get", ACP_AGENTS, "listAcpAgents", "List ACP agents", "AcpAgentPage", query=(*PAGING, "strict")),
    Operation(
        "post",
        ACP_AGENTS,
        "createAcpAgent",
        "Add an ACP agent",
        "AcpAgent",
        "AcpAgentCreate",
        query=("strict",),
        status=201,
        errors=(409, 422),
    ),
    Operation("get", ACP_AGENT, "getAcpAgent", "Get an ACP agent", "AcpAgent"),
    Operation(
        "patch",
        ACP_AGENT,
        "updateAcpAgent",
        "Change an ACP agent",
        "AcpAgent",
        "AcpAgentChange",
        query=("strict",),
        errors=(412, 422),
    ),
    Operation("delete", ACP_AGENT, "deleteAcpAgent", "Delete an ACP agent with its versions", "Done", errors=(412,)),
    Operation(
        "get",
        f"{ACP_AGENT}/versions",
        "listAcpAgentVersions",
        "List the versions of an ACP agent",
        "McpClientVersionPage",
        query=(*PAGING, "strict"),
    ),
    Operation("get", ACP_VERSION, "getAcpAgentVersion", "Get a version of an ACP agent", "McpClientVersion"),
    Operation(
        "post",
        f"{ACP_VERSION}/restore",
        "restoreAcpAgentVersion",
        "Restore a version of an ACP agent",
        "AcpAgent",
        errors=(412,),
    ),
)
ACP_DESCRIPTIONS = {
    "listAcpAgents": "For superusers. Without the values of the environment.",
    "createAcpAgent": "For superusers. Commands are not taken from a request: send a key of ACP_COMMANDS.",
    "getAcpAgent": "For superusers. Without the values of the environment.",
    "updateAcpAgent": "For superusers. Send env again, or null, if the command changes. If-Match is optional.",
    "deleteAcpAgent": "For superusers. Agents that use it run without it.",
    "listAcpAgentVersions": "For superusers. Newest first, without the values of the environment.",
    "getAcpAgentVersion": "For superusers. Without the values of the environment.",
    "restoreAcpAgentVersion": "For superusers. Makes a new version. Another command gets no stored environment.",
}
ACP_VERSION_NUMBER: JSONObject = {
    "number": {"description": "The number of a version of the ACP agent.", "example": "1"}
}
ACP_EXAMPLES: dict[str, JSONObject] = {
    "createAcpAgent": {
        "id": "coder",
        "title": "Coder",
        "commandKey": "coder",
        "permissions": "ask",
        "limits": {"memoryMb": 1024, "promptSeconds": 120},
    },
    "updateAcpAgent": {"enabled": False},
}
ACP_FIELDS = {
    **{
        f"{schema}.{field}": text
        for schema in ("AcpAgent", "AcpAgentCreate", "AcpAgentChange", "AcpAgentPage")
        for field, text in {
            "id": "The ID of the ACP agent. Agents name it acp- and this ID.",
            "title": "The name of the ACP agent.",
            "description": "Its purpose. The models that may call it read this.",
            "commandKey": "A key of ACP_COMMANDS: its program.",
            "enabled": "Whether agents can use it.",
            "model": "The ID of one of its models. Null: its own choice.",
            "limits": "What its processes may use, and how long a prompt may take.",
        }.items()
    },
    "env": "Its environment variables. Their values are never returned.",
    "authMethodId": "The ID of the method with which it is authenticated.",
    "persistSession": "Whether a conversation keeps one process and session.",
    "permissions": "How its requests for permission are answered.",
    "workspace": "The name of a workspace of the team. Null: a folder for each conversation.",
    "memoryMb": "The memory of one of its processes, in megabytes.",
    "processes": "The number of its processes.",
    "cpuSeconds": "The processor time of one of its processes.",
    "promptSeconds": "How long one prompt may take.",
    "acpAgents": "The ACP agents of the page.",
}


def acp_schemas() -> dict[str, JSONObject]:
    limits = object_of(memoryMb=INTEGER, processes=INTEGER, cpuSeconds=INTEGER, promptSeconds=INTEGER)
    return {
        "AcpAgent": with_optional_warnings(acp_agent_schema()),
        "AcpLimits": limits,
        "AcpAgentPage": page_of("acpAgents", "AcpAgent"),
    }


def acp_agent_schema() -> JSONObject:
    return object_of(
        id=STRING,
        title=STRING,
        description=STRING,
        commandKey=STRING,
        env=OBJECT,
        authMethodId=nullable(STRING),
        persistSession=BOOLEAN,
        permissions={"enum": AcpAgent.Permissions.values},
        limits=ref("AcpLimits"),
        model=nullable(STRING),
        workspace=nullable(STRING),
        enabled=BOOLEAN,
        versionNumber=INTEGER,
        createdAt=DATE_TIME,
        updatedAt=DATE_TIME,
    )


ACP_SECTION = ApiSection(
    ACP_OPERATIONS,
    {"": "ACP agents"},
    acp_schemas,
    bodies={"AcpAgentCreate": AcpAgentBody, "AcpAgentChange": as_partial(AcpAgentBody)},
    descriptions=ACP_DESCRIPTIONS,
    own_parameters={"getAcpAgentVersion": ACP_VERSION_NUMBER, "restoreAcpAgentVersion": ACP_VERSION_NUMBER},
    page_sizes={"listAcpAgentVersions": 20},
    examples=ACP_EXAMPLES,
    fields=ACP_FIELDS,
)
