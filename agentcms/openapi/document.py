"""The OpenAPI 3.1 document, built from the table of operations and the validation models of the domain."""

from __future__ import annotations

from functools import cache

from pydantic import BaseModel

from agentcms.openapi.approvals import approval_schemas
from agentcms.openapi.background_tasks import TASK_DESCRIPTIONS, TASK_FIELDS, TASK_OPERATIONS, TASK_QUERY, task_schemas
from agentcms.openapi.datasets import (
    DATASET_DESCRIPTIONS,
    DATASET_EXAMPLES,
    DATASET_FIELDS,
    DATASET_OPERATIONS,
    DATASET_QUERY,
    OWN_DATASET_PARAMETERS,
    dataset_schemas,
)
from agentcms.openapi.descriptions import (
    BODY_EXAMPLES,
    LINES_EXAMPLE,
    OPERATION_DESCRIPTIONS,
    OWN_PARAMETERS,
    PARAMETER_DESCRIPTIONS,
)
from agentcms.openapi.experiments import (
    EXPERIMENT_DESCRIPTIONS,
    EXPERIMENT_EXAMPLES,
    EXPERIMENT_FIELDS,
    EXPERIMENT_OPERATIONS,
    EXPERIMENT_QUERY,
    OWN_EXPERIMENT_PARAMETERS,
    experiment_schemas,
)
from agentcms.openapi.field_descriptions import FIELD_DESCRIPTIONS
from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    JSON,
    STRING,
    UUID_STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
    with_optional_warnings,
)
from agentcms.openapi.memory import (
    MEMORY_DESCRIPTIONS,
    MEMORY_EXAMPLES,
    MEMORY_FIELDS,
    MEMORY_OPERATIONS,
    MEMORY_QUERY,
    OWN_MEMORY_PARAMETERS,
    memory_schemas,
)
from agentcms.openapi.operations import OPERATIONS, Operation
from agentcms.openapi.runs import RUN_STATUSES, run_schemas
from agentcms.openapi.scorers import (
    OWN_SCORER_PARAMETERS,
    SCORER_DESCRIPTIONS,
    SCORER_EXAMPLES,
    SCORER_FIELDS,
    SCORER_OPERATIONS,
    SCORER_QUERY,
    scorer_schemas,
)
from agentcms.openapi.signals import (
    SIGNAL_DESCRIPTIONS,
    SIGNAL_EXAMPLES,
    SIGNAL_FIELDS,
    SIGNAL_OPERATIONS,
    signal_schemas,
)
from agentcms.openapi.tools.knowledge import (
    KNOWLEDGE_DESCRIPTIONS,
    KNOWLEDGE_EXAMPLES,
    KNOWLEDGE_FIELDS,
    KNOWLEDGE_OPERATIONS,
    OWN_KNOWLEDGE_PARAMETERS,
    knowledge_schemas,
)
from agentcms.openapi.tools.mcp import (
    ACP_DESCRIPTIONS,
    ACP_EXAMPLES,
    ACP_FIELDS,
    ACP_OPERATIONS,
    acp_schemas,
    mcp_schemas,
)
from agents_app.api.schemas import ChangeOptions, DuplicateOptions, Identity, Ownership
from agents_app.configuration.schema import ADDED_FIELDS, WIRE_NAMES, AgentConfig, AgentCreate, as_partial
from evals_app.api.comparisons import CompareBody
from evals_app.api.scores import ScoreBody
from evals_app.datasets.schema import DatasetBody, ItemBody, ItemChange
from evals_app.experiments.options import ExperimentBody, ExperimentChange, ItemRun, ResultChange, SubmittedResult
from evals_app.gates.schema import GateBody
from evals_app.scorers.schema import ScorerBody
from knowledge_app.api.schemas import (
    CreateIndexBody,
    DocumentBody,
    KnowledgeBaseBody,
    SearchBody,
    UpsertBody,
    VectorQueryBody,
)
from runs_app.api.approvals import APPROVAL_STATES
from runs_app.requests.options import CallOptions
from tools_app.api.acp_schemas import AcpAgentBody
from tools_app.api.schemas import McpClientBody
from versions_app.api.schemas import Description, RestoreOptions, Undo
from versions_app.exchange.records import ACTIONS

DESCRIPTIONS = OPERATION_DESCRIPTIONS | MEMORY_DESCRIPTIONS | DATASET_DESCRIPTIONS | EXPERIMENT_DESCRIPTIONS
DESCRIPTIONS |= SIGNAL_DESCRIPTIONS | TASK_DESCRIPTIONS | SCORER_DESCRIPTIONS | ACP_DESCRIPTIONS
OWN_DESCRIPTIONS = OWN_PARAMETERS | OWN_MEMORY_PARAMETERS | OWN_DATASET_PARAMETERS | OWN_EXPERIMENT_PARAMETERS
OWN_DESCRIPTIONS |= OWN_SCORER_PARAMETERS
DESCRIPTIONS |= KNOWLEDGE_DESCRIPTIONS
OWN_DESCRIPTIONS |= OWN_KNOWLEDGE_PARAMETERS
# The subject of an operation, by the first of these parts that its path contains.
SUBJECTS = {
    "/datasets": "Evaluations",
    "/api/knowledge": "Knowledge",
    "/api/vector": "Knowledge",
    "/api/embedders": "Knowledge",
    "/experiments": "Evaluations",
    "/gates": "Evaluations",
    "/stored/scorers": "Scorers",
    "/api/scores": "Scorers",
    "/api/observability": "Traces",
    "/mcp": "MCP servers",
    "/acp-agents": "ACP agents",
    "/versions": "Versions",
    "/activations": "Live history",
    "/deleted-agents": "Trash",
    "/agent-export": "Export and import",
    "/agent-import": "Export and import",
    "/jobs": "Export and import",
    "schema": "Descriptions of the API",
    "/api/memory": "Conversations",
    "/stored/agents": "Agents",
    "/api/agents": "Running agents",
    "/api/runs": "Runs",
    "/api/approvals": "Approvals",
    "/api/background-tasks": "Background tasks",
    "/api/": "Other",
}

# Media types of bodies and responses that are not JSON.
MEDIA_TYPES = {"Lines": "application/x-ndjson", "Events": "text/event-stream"}


REQUIRED_BODIES = {
    "AgentCreate",
    "ApprovalDecision",
    "Call",
    "CallDecision",
    "DatasetCreate",
    "DatasetItemCreate",
    "DatasetItemIds",
    "DatasetItemsCreate",
    "CompareExperiments",
    "GateCreate",
    "ScoreCreate",
    "ScorerCreate",
    "SubmittedResult",
    "Duplicate",
    "KnowledgeBaseCreate",
    "KnowledgeSearch",
    "Lines",
    "Observe",
    "Recover",
    "Resume",
    "ThreadDecision",
    "VectorIndexCreate",
    "VectorQuery",
    "VectorUpsert",
}

FLAG = {**BOOLEAN, "default": False}


def order_by_schema(*fields: str) -> JSON:
    return {
        "type": "object",
        "properties": {"field": {"enum": list(fields)}, "direction": {"enum": ["ASC", "DESC"]}},
    }


QUERY_PARAMETERS: dict[str, JSON] = {
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
    "runStatus": {"name": "status", "schema": {"enum": ["all", *RUN_STATUSES], "default": "all"}},
    "approvalState": {"name": "state", "schema": {"enum": [*APPROVAL_STATES], "default": "open"}},
    "fromDate": {"schema": DATE_TIME},
    "toDate": {"schema": DATE_TIME},
    "recordAction": {"name": "action", "schema": {"enum": ["all", *ACTIONS], "default": "all"}},
    "limit": {"schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}},
    "offset": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0}},
    "after": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0}},
}

ERROR_DESCRIPTIONS = {
    400: "The request is invalid; issues lists the faults.",
    401: "Invalid or expired token.",
    403: "The role does not allow this; the message names the required role.",
    404: "Not found, or no access.",
    406: "Only application/json is available.",
    409: "The request conflicts with the current state.",
    410: "Nobody decided in time.",
    412: "If-Match is stale; the response has the current ETag, and for an edit where the changes touch.",
    413: "Request body too large.",
    415: "Send application/json.",
    422: "The Idempotency-Key was used for another request, or a decision does not fit its call.",
    424: "The run failed; the message has the reason.",
    429: "Too many requests or jobs: retry after the seconds in Retry-After. Or too large files: delete some.",
    501: "Not supported.",
    503: "A lock was not available in time; retry after the seconds in Retry-After.",
}


@cache
def document() -> JSON:
    """Return the whole document."""
    paths: dict[str, JSON] = {}
    others: tuple[Operation, ...] = (
        *TASK_OPERATIONS,
        *MEMORY_OPERATIONS,
        *SIGNAL_OPERATIONS,
        *DATASET_OPERATIONS,
        *EXPERIMENT_OPERATIONS,
    )
    others += SCORER_OPERATIONS + KNOWLEDGE_OPERATIONS
    for operation in (*OPERATIONS, *others, *ACP_OPERATIONS):
        paths.setdefault(operation.path, {})[operation.method] = operation_object(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Agent CMS", "version": "1", "description": "Stored agents and their histories."},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": component_schemas(),
        },
    }


def operation_object(operation: Operation) -> JSON:
    """Return the OpenAPI object of an operation."""
    result: JSON = {
        "operationId": operation.id,
        "tags": [tag(operation.path)],
        "summary": operation.summary,
        "description": DESCRIPTIONS.get(operation.id, ""),
        "parameters": parameters(operation),
        "responses": {
            str(operation.status): success_response(operation),
            **{str(status): error_response(status) for status in sorted(error_statuses(operation))},
        },
    }
    if operation.id == "getAgent":
        result["responses"]["304"] = {"description": "Not modified, according to If-None-Match."}
    if operation.id == "exportAgents":  # nothing changed since the last export
        result["responses"]["200"] = success_response(operation)
    if operation.body:
        media_type = MEDIA_TYPES.get(operation.body, "application/json")
        is_required = operation.body in REQUIRED_BODIES
        content: JSON = {"schema": ref(operation.body)}
        if example := body_example(operation):
            content["example"] = example
        result["requestBody"] = {"required": is_required, "content": {media_type: content}}
    return result


def body_example(operation: Operation) -> str | JSON | None:
    """Return the example of the body of an operation, or None."""
    examples = BODY_EXAMPLES | MEMORY_EXAMPLES | DATASET_EXAMPLES | EXPERIMENT_EXAMPLES | SIGNAL_EXAMPLES
    examples = examples | SCORER_EXAMPLES | KNOWLEDGE_EXAMPLES | ACP_EXAMPLES
    return LINES_EXAMPLE if operation.body == "Lines" else examples.get(operation.id)


def tag(path: str) -> str:
    """Return the subject of a path, by which the reference groups the operations."""
    return next(subject for part, subject in SUBJECTS.items() if part in path)


def parameters(operation: Operation) -> list[JSON]:
    """Return the parameters of an operation with their meaning."""
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    in_path = [{"name": name, "in": "path", "required": True, "schema": STRING} for name in names]
    known = QUERY_PARAMETERS | TASK_QUERY | MEMORY_QUERY | DATASET_QUERY | EXPERIMENT_QUERY | SCORER_QUERY
    in_query = [{"name": name, "in": "query", "schema": STRING, **known.get(name, {})} for name in operation.query]
    return [*(describe_parameter(operation, parameter) for parameter in in_path + in_query)]


def describe_parameter(operation: Operation, parameter: JSON) -> JSON:
    """Return a parameter with its description, example and default, unless it has its own description."""
    name = parameter["name"]
    own = OWN_DESCRIPTIONS.get(operation.id, {}).get(name, {})
    described = {
        **PARAMETER_DESCRIPTIONS.get(name, {}),
        **parameter,
        **{key: own[key] for key in own if key != "default"},
    }
    if "default" in own:
        described["schema"] = {**described["schema"], "default": own["default"]}
    return described


def error_statuses(operation: Operation) -> set[int]:
    """Return the error statuses of an operation: the common ones, those of the method and its own."""
    idempotency = (409, 422) if operation.method == "post" else ()
    size = (413,) if operation.body else ()
    return {400, 401, 403, 404, 406, 415, 429, 503, *operation.errors, *idempotency, *size}


def success_response(operation: Operation) -> JSON:
    media_type = MEDIA_TYPES.get(operation.response, "application/json")
    return {"description": operation.summary, "content": {media_type: {"schema": ref(operation.response)}}}


def error_response(status: int) -> JSON:
    return {"description": ERROR_DESCRIPTIONS[status], "content": {"application/json": {"schema": ref("Error")}}}


def component_schemas() -> dict[str, JSON]:
    """Return the schemas of request and response bodies by name."""
    schemas = (
        response_schemas() | page_schemas() | run_schemas() | memory_schemas() | approval_schemas() | mcp_schemas()
    )
    schemas |= task_schemas()
    schemas |= acp_schemas()
    add_model_schema(schemas, "AcpAgentCreate", AcpAgentBody)
    add_model_schema(schemas, "AcpAgentChange", as_partial(AcpAgentBody))
    add_model_schema(schemas, "McpClientCreate", McpClientBody)
    add_model_schema(schemas, "McpClientChange", as_partial(McpClientBody))
    add_evaluation_schemas(schemas)
    schemas |= signal_schemas()
    add_model_schema(schemas, "CallOptions", CallOptions)
    add_model_schema(schemas, "AgentCreate", AgentCreate, ChangeOptions)
    add_model_schema(schemas, "AgentChange", as_partial(AgentConfig), Ownership, ChangeOptions)
    add_model_schema(schemas, "Duplicate", Identity, DuplicateOptions, Ownership)
    add_model_schema(schemas, "ChangeOptions", ChangeOptions)
    add_model_schema(schemas, "Undo", Undo, ChangeOptions)
    add_model_schema(schemas, "RestoreOptions", RestoreOptions)
    add_model_schema(schemas, "VersionDescription", Description)
    add_model_schema(schemas, "Configuration", AgentConfig)
    schemas["Agent"] = agent_schema(schemas["Configuration"])
    return {name: describe_fields(name, schema) for name, schema in schemas.items()}


def add_evaluation_schemas(schemas: dict[str, JSON]) -> None:
    schemas |= dataset_schemas() | experiment_schemas() | scorer_schemas() | knowledge_schemas()
    add_model_schema(schemas, "ScorerCreate", ScorerBody)
    add_model_schema(schemas, "ScorerChange", as_partial(ScorerBody))
    add_model_schema(schemas, "ScoreCreate", ScoreBody)
    add_knowledge_bodies(schemas)
    add_model_schema(schemas, "DatasetCreate", DatasetBody)
    add_model_schema(schemas, "DatasetChange", as_partial(DatasetBody))
    add_model_schema(schemas, "DatasetItemCreate", ItemBody)
    add_model_schema(schemas, "DatasetItemChange", ItemChange)
    add_model_schema(schemas, "ExperimentCreate", ExperimentBody)
    add_model_schema(schemas, "ExperimentChange", ExperimentChange)
    add_model_schema(schemas, "SubmittedResult", SubmittedResult)
    add_model_schema(schemas, "ResultChange", ResultChange)
    add_model_schema(schemas, "ItemRun", ItemRun)
    add_model_schema(schemas, "CompareExperiments", CompareBody)
    add_model_schema(schemas, "GateCreate", GateBody)
    add_model_schema(schemas, "GateChange", as_partial(GateBody))


def add_knowledge_bodies(schemas: dict[str, JSON]) -> None:
    add_model_schema(schemas, "KnowledgeBaseCreate", KnowledgeBaseBody)
    add_model_schema(schemas, "KnowledgeBaseChange", as_partial(KnowledgeBaseBody))
    add_model_schema(schemas, "KnowledgeSearch", SearchBody)
    add_model_schema(schemas, "DocumentCreate", DocumentBody)
    add_model_schema(schemas, "VectorIndexCreate", CreateIndexBody)
    add_model_schema(schemas, "VectorUpsert", UpsertBody)
    add_model_schema(schemas, "VectorQuery", VectorQueryBody)


def describe_fields(name: str, schema: JSON) -> JSON:
    """Return a schema whose fields say what they mean. The shared parts of schemas do not change."""
    described = dict(schema)
    if "properties" in schema:
        described["properties"] = {
            field: describe_fields(name, with_description(name, field, value))
            for field, value in schema["properties"].items()
        }
    for key in ("anyOf", "allOf"):
        if key in schema:
            described[key] = [describe_fields(name, part) for part in schema[key]]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            described[key] = describe_fields(name, schema[key])
    return described


def with_description(name: str, field: str, schema: JSON) -> JSON:
    texts = TASK_FIELDS | MEMORY_FIELDS | DATASET_FIELDS | EXPERIMENT_FIELDS | SIGNAL_FIELDS | SCORER_FIELDS
    texts = KNOWLEDGE_FIELDS | texts | ACP_FIELDS | FIELD_DESCRIPTIONS
    text = texts.get(f"{name}.{field}", texts.get(field, ""))
    return {"description": text, **schema} if text else schema


def response_schemas() -> dict[str, JSON]:
    error = object_of(error=STRING, code=STRING)
    error["properties"] |= {
        "issues": array_of(object_of(field=STRING, message=STRING)),
        "changedFields": {**array_of(STRING), "description": "Of a 412: the fields that changed since."},
        "touching": {**array_of(STRING), "description": "Of a 412: the paths at which both changes touch."},
    }
    return {
        "Anything": ANY,
        "Lines": {"type": "string", "description": "One JSON object on each line."},
        "Error": error,
        "Done": object_of(success=BOOLEAN, message=STRING),
        "Activated": with_optional_warnings(object_of(success=BOOLEAN, message=STRING, activeVersionId=UUID_STRING)),
        "Warning": object_of(field=STRING, key=STRING, message=STRING),
        "Version": version_schema(),
        "Comparison": comparison_schema(),
        "Activation": activation_schema(),
        "Dependents": object_of(
            dependents=array_of(object_of(id=STRING, name=STRING, ownerId=STRING)), total=INTEGER, hidden=INTEGER
        ),
        "DeletedAgent": deleted_agent_schema(),
        "Job": job_schema(),
        "ListedJob": listed_job_schema(),
        "Record": record_schema(),
    }


def page_schemas() -> dict[str, JSON]:
    cursor_page = object_of(
        agents=array_of(ref("Agent")), perPage=INTEGER, hasMore=BOOLEAN, nextCursor=nullable(STRING)
    )
    live_at_time = object_of(
        at=DATE_TIME, versionId=UUID_STRING, versionNumber=INTEGER, kept=BOOLEAN, activation=ref("Activation")
    )
    return {
        "AgentPage": {"anyOf": [page_of("agents", "Agent"), cursor_page]},
        "VersionPage": page_of("versions", "Version"),
        "DeletedAgentPage": page_of("deletedAgents", "DeletedAgent"),
        "JobPage": page_of("jobs", "ListedJob"),
        "RecordPage": page_of("records", "Record"),
        "Activations": {"anyOf": [page_of("activations", "Activation"), live_at_time]},
    }


def comparison_schema() -> JSON:
    kind = {"enum": ["added", "removed", "changed"]}
    return object_of(
        diffs=array_of(object_of(field=STRING, previousValue=ANY, currentValue=ANY)),
        summary=STRING,
        details=array_of(object_of(path=STRING, kind=kind, previousValue=ANY, currentValue=ANY)),
        fromVersion=ref("Version"),
        toVersion=ref("Version"),
    )


def deleted_agent_schema() -> JSON:
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


def job_schema() -> JSON:
    return object_of(
        id=UUID_STRING,
        kind=STRING,
        state={"enum": ["queued", "running", "done", "failed"]},
        done=INTEGER,
        total=nullable(INTEGER),
        result=ANY,
        error=nullable(STRING),
        createdAt=DATE_TIME,
        startedAt=nullable(DATE_TIME),
        finishedAt=nullable(DATE_TIME),
    )


def listed_job_schema() -> JSON:
    fields = {name: field for name, field in job_schema()["properties"].items() if name not in ("result", "error")}
    return object_of(**fields, fileBytes=INTEGER, reportBytes=INTEGER)


def record_schema() -> JSON:
    """Return the schema of the outcome of a record of an import."""
    schema = object_of(line=INTEGER, action={"enum": [*ACTIONS]})
    schema["properties"] |= {"id": STRING, "reason": STRING, "warnings": array_of(ref("Warning"))}
    return schema


def add_model_schema(schemas: dict[str, JSON], name: str, *models: type[BaseModel]) -> None:
    """Add one schema with the fields of several models, and the schemas that they refer to."""
    properties: JSON = {}
    required: list[str] = []
    for model in models:
        schema = model.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        properties |= schema["properties"]
        required += schema.get("required", [])
    schemas[name] = {"type": "object", "properties": properties, **({"required": required} if required else {})}


def agent_schema(configuration: JSON) -> JSON:
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
        warnings=array_of(ref("Warning")),
    )
    added = {WIRE_NAMES[name] for name in ADDED_FIELDS}  # a response has them only if they are set
    return {**schema, "required": [name for name in schema["required"] if name not in added]}


def version_schema() -> JSON:
    version = object_of(
        id=UUID_STRING,
        agentId=STRING,
        versionNumber=INTEGER,
        name=STRING,
        snapshot=ref("Configuration"),
        changedFields=array_of(STRING),
        changeMessage=STRING,
        createdAt=DATE_TIME,
        author=nullable(STRING),
        source=STRING,
        basedOn=nullable(INTEGER),
        pinned=BOOLEAN,
        isActive=BOOLEAN,
        isHead=BOOLEAN,
    )
    return with_optional_warnings(version)


def activation_schema() -> JSON:
    return object_of(
        id=INTEGER,
        fromVersionId=nullable(UUID_STRING),
        fromVersionNumber=nullable(INTEGER),
        toVersionId=UUID_STRING,
        toVersionNumber=INTEGER,
        author=nullable(STRING),
        source=STRING,
        reason=STRING,
        createdAt=DATE_TIME,
    )
