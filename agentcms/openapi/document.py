"""The API described as OpenAPI 3.1: one table of operations, and the shapes that the domain itself checks with."""

from __future__ import annotations

from functools import cache

from pydantic import BaseModel

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
)
from agentcms.openapi.operations import OPERATIONS, Operation
from agentcms.openapi.runs import RUN_STATUSES, run_schemas
from agents_app.api.schemas import ChangeOptions, DuplicateOptions, Identity, Ownership
from agents_app.configuration.schema import AgentConfig, AgentCreate, as_partial
from runs_app.requests.options import CallOptions
from versions_app.api.schemas import Description, Undo

# What is no JSON.
MEDIA_TYPES = {"Lines": "application/x-ndjson", "Events": "text/event-stream"}


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
    "cursor": {"schema": STRING, "description": "Empty for the beginning, then nextCursor; instead of page."},
    "versionNumber": {"schema": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}},
    "at": {"schema": DATE_TIME},
    "from": {"required": True, "schema": STRING, "description": "The id of a version, live or head."},
    "to": {"required": True, "schema": STRING, "description": "The id of a version, live or head."},
    **{name: {"schema": BOOLEAN} for name in ("strict", "force", "dryRun", "publish", "partial", "children")},
    "runStatus": {"name": "status", "schema": {"enum": ["all", *RUN_STATUSES], "default": "all"}},
    "after": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0}},
}

ERROR_DESCRIPTIONS = {
    400: "A part of the request is wrong; issues say where.",
    401: "Invalid or expired token.",
    403: "The role that may is named.",
    404: "It is not there, or not yours.",
    406: "Only application/json is spoken.",
    409: "The present state is against it.",
    412: "If-Match is stale; the answer carries the tag of now.",
    413: "Request body too large.",
    415: "Send application/json.",
    422: "The Idempotency-Key was used for another request.",
    424: "The run failed; the sentence says why.",
    429: "Too many requests; Retry-After says when.",
    503: "A lock could not be had in time; Retry-After says when.",
}


@cache
def document() -> JSON:
    """The whole description."""
    paths: dict[str, JSON] = {}
    for operation in OPERATIONS:
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
    """One operation in OpenAPI's words."""
    said: JSON = {
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters(operation),
        "responses": {
            str(operation.status): success_response(operation),
            **{str(status): error_response(status) for status in sorted(error_statuses(operation))},
        },
    }
    if operation.id == "getAgent":
        said["responses"]["304"] = {"description": "Known already, by If-None-Match."}
    if operation.body:
        kind = MEDIA_TYPES.get(operation.body, "application/json")
        needed = operation.body in ("AgentCreate", "Duplicate", "Lines", "Call", "Observe")
        said["requestBody"] = {"required": needed, "content": {kind: {"schema": ref(operation.body)}}}
    return said


def parameters(operation: Operation) -> list[JSON]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    inside = [{"name": name, "in": "path", "required": True, "schema": STRING} for name in names]
    return inside + [
        {"name": name, "in": "query", "schema": STRING, **QUERY_PARAMETERS.get(name, {})} for name in operation.query
    ]


def error_statuses(operation: Operation) -> set[int]:
    """What may be refused: some things always, some by method, some by operation."""
    repeats = (409, 422) if operation.method == "post" else ()
    size = (413,) if operation.body else ()
    return {400, 401, 403, 404, 406, 415, 429, 503, *operation.errors, *repeats, *size}


def success_response(operation: Operation) -> JSON:
    kind = MEDIA_TYPES.get(operation.answer, "application/json")
    return {"description": operation.summary, "content": {kind: {"schema": ref(operation.answer)}}}


def error_response(status: int) -> JSON:
    return {"description": ERROR_DESCRIPTIONS[status], "content": {"application/json": {"schema": ref("Error")}}}


def component_schemas() -> dict[str, JSON]:
    """The shapes of bodies and answers by name."""
    found = response_schemas() | page_schemas() | run_schemas()
    add_model_schema(found, "CallOptions", CallOptions)
    add_model_schema(found, "AgentCreate", AgentCreate, ChangeOptions)
    add_model_schema(found, "AgentChange", as_partial(AgentConfig), Ownership, ChangeOptions)
    add_model_schema(found, "Duplicate", Identity, DuplicateOptions, Ownership)
    add_model_schema(found, "Said", ChangeOptions)
    add_model_schema(found, "Undo", Undo, ChangeOptions)
    add_model_schema(found, "VersionDescription", Description)
    add_model_schema(found, "Configuration", AgentConfig)
    found["Agent"] = agent_schema(found["Configuration"])
    return found


def response_schemas() -> dict[str, JSON]:
    said = object_of(error=STRING, code=STRING)
    said["properties"] |= {"issues": array_of(object_of(field=STRING, message=STRING))}
    return {
        "Anything": ANY,
        "Lines": {"type": "string", "description": "One JSON object on each line."},
        "Error": said,
        "Done": object_of(success=BOOLEAN, message=STRING),
        "Activated": object_of(success=BOOLEAN, message=STRING, activeVersionId=UUID_STRING),
        "Warning": object_of(field=STRING, key=STRING, message=STRING),
        "Version": version_schema(),
        "Comparison": comparison_schema(),
        "Activation": activation_schema(),
        "Dependents": object_of(
            dependents=array_of(object_of(id=STRING, name=STRING, ownerId=STRING)), total=INTEGER, hidden=INTEGER
        ),
        "Job": job_schema(),
    }


def page_schemas() -> dict[str, JSON]:
    walked = object_of(agents=array_of(ref("Agent")), perPage=INTEGER, hasMore=BOOLEAN, nextCursor=nullable(STRING))
    then = object_of(
        at=DATE_TIME, versionId=UUID_STRING, versionNumber=INTEGER, kept=BOOLEAN, activation=ref("Activation")
    )
    return {
        "AgentPage": {"anyOf": [page_of("agents", "Agent"), walked]},
        "VersionPage": page_of("versions", "Version"),
        "Activations": {"anyOf": [page_of("activations", "Activation"), then]},
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


def add_model_schema(found: dict[str, JSON], name: str, *parts: type[BaseModel]) -> None:
    """One schema of several shapes side by side; what they refer to stands beside it."""
    properties: JSON = {}
    required: list[str] = []
    for part in parts:
        schema = part.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
        found |= schema.pop("$defs", {})
        properties |= schema["properties"]
        required += schema.get("required", [])
    found[name] = {"type": "object", "properties": properties, **({"required": required} if required else {})}


def agent_schema(configuration: JSON) -> JSON:
    fields = {
        name: {key: value for key, value in schema.items() if key != "default"}
        for name, schema in configuration["properties"].items()
    }
    return object_of(
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
        warnings=array_of(ref("Warning")),
    )


def version_schema() -> JSON:
    return object_of(
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
