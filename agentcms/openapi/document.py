"""The API described as OpenAPI 3.1: one table of operations, and the shapes that the domain itself checks with."""

from __future__ import annotations

from functools import cache

from pydantic import BaseModel

from agentcms.openapi.json_schema import ANY, FLAG, ID, JSON, TEXT, TIME, WHOLE, closed, many, maybe, page, ref
from agentcms.openapi.operations import OPERATIONS, Operation
from agentcms.openapi.runs import RUN_STATES, runs
from agents_app.api.schemas import ChangeOptions, DuplicateOptions, Identity, Ownership
from agents_app.configuration.schema import AgentConfig, AgentCreate, as_partial
from runs_app.requests.options import CallOptions
from versions_app.api.schemas import Description, Undo

# What is no JSON.
KINDS = {"Lines": "application/x-ndjson", "Events": "text/event-stream"}


def order(*fields: str) -> JSON:
    return {
        "type": "object",
        "properties": {"field": {"enum": list(fields)}, "direction": {"enum": ["ASC", "DESC"]}},
    }


QUERY: dict[str, JSON] = {
    "page": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0}},
    "perPage": {"schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
    "agentOrder": {
        "name": "orderBy",
        "style": "deepObject",
        "explode": True,
        "schema": order("createdAt", "updatedAt", "name"),
    },
    "versionOrder": {
        "name": "orderBy",
        "style": "deepObject",
        "explode": True,
        "schema": order("versionNumber", "createdAt"),
    },
    "metadata": {"content": {"application/json": {"schema": {"type": "object"}}}},
    "status": {"schema": {"enum": ["published", "draft"], "default": "published"}},
    "cursor": {"schema": TEXT, "description": "Empty for the beginning, then nextCursor; instead of page."},
    "versionNumber": {"schema": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}},
    "at": {"schema": TIME},
    "from": {"required": True, "schema": TEXT, "description": "The id of a version, live or head."},
    "to": {"required": True, "schema": TEXT, "description": "The id of a version, live or head."},
    **{name: {"schema": FLAG} for name in ("strict", "force", "dryRun", "publish", "partial", "children")},
    "runStatus": {"name": "status", "schema": {"enum": ["all", *RUN_STATES], "default": "all"}},
    "after": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0}},
}

MESSAGES = {
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
        paths.setdefault(operation.path, {})[operation.method] = described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Agent CMS", "version": "1", "description": "Stored agents and their histories."},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas(),
        },
    }


def described(operation: Operation) -> JSON:
    """One operation in OpenAPI's words."""
    said: JSON = {
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters(operation),
        "responses": {
            str(operation.status): answered(operation),
            **{str(status): refused(status) for status in sorted(errors(operation))},
        },
    }
    if operation.id == "getAgent":
        said["responses"]["304"] = {"description": "Known already, by If-None-Match."}
    if operation.body:
        kind = KINDS.get(operation.body, "application/json")
        needed = operation.body in ("AgentCreate", "Duplicate", "Lines", "Call", "Observe")
        said["requestBody"] = {"required": needed, "content": {kind: {"schema": ref(operation.body)}}}
    return said


def parameters(operation: Operation) -> list[JSON]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    inside = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in names]
    return inside + [{"name": name, "in": "query", "schema": TEXT, **QUERY.get(name, {})} for name in operation.query]


def errors(operation: Operation) -> set[int]:
    """What may be refused: some things always, some by method, some by operation."""
    repeats = (409, 422) if operation.method == "post" else ()
    size = (413,) if operation.body else ()
    return {400, 401, 403, 404, 406, 415, 429, 503, *operation.errors, *repeats, *size}


def answered(operation: Operation) -> JSON:
    kind = KINDS.get(operation.answer, "application/json")
    return {"description": operation.summary, "content": {kind: {"schema": ref(operation.answer)}}}


def refused(status: int) -> JSON:
    return {"description": MESSAGES[status], "content": {"application/json": {"schema": ref("Error")}}}


def schemas() -> dict[str, JSON]:
    """The shapes of bodies and answers by name."""
    found = answers() | pages() | runs()
    add(found, "CallOptions", CallOptions)
    add(found, "AgentCreate", AgentCreate, ChangeOptions)
    add(found, "AgentChange", as_partial(AgentConfig), Ownership, ChangeOptions)
    add(found, "Duplicate", Identity, DuplicateOptions, Ownership)
    add(found, "Said", ChangeOptions)
    add(found, "Undo", Undo, ChangeOptions)
    add(found, "VersionDescription", Description)
    add(found, "Configuration", AgentConfig)
    found["Agent"] = agent(found["Configuration"])
    return found


def answers() -> dict[str, JSON]:
    said = closed(error=TEXT, code=TEXT)
    said["properties"] |= {"issues": many(closed(field=TEXT, message=TEXT))}
    return {
        "Anything": ANY,
        "Lines": {"type": "string", "description": "One JSON object on each line."},
        "Error": said,
        "Done": closed(success=FLAG, message=TEXT),
        "Activated": closed(success=FLAG, message=TEXT, activeVersionId=ID),
        "Warning": closed(field=TEXT, key=TEXT, message=TEXT),
        "Version": version(),
        "Comparison": comparison(),
        "Activation": activation(),
        "Dependents": closed(dependents=many(closed(id=TEXT, name=TEXT, ownerId=TEXT)), total=WHOLE, hidden=WHOLE),
        "Job": job(),
    }


def pages() -> dict[str, JSON]:
    walked = closed(agents=many(ref("Agent")), perPage=WHOLE, hasMore=FLAG, nextCursor=maybe(TEXT))
    then = closed(at=TIME, versionId=ID, versionNumber=WHOLE, kept=FLAG, activation=ref("Activation"))
    return {
        "AgentPage": {"anyOf": [page("agents", "Agent"), walked]},
        "VersionPage": page("versions", "Version"),
        "Activations": {"anyOf": [page("activations", "Activation"), then]},
    }


def comparison() -> JSON:
    kind = {"enum": ["added", "removed", "changed"]}
    return closed(
        diffs=many(closed(field=TEXT, previousValue=ANY, currentValue=ANY)),
        summary=TEXT,
        details=many(closed(path=TEXT, kind=kind, previousValue=ANY, currentValue=ANY)),
        fromVersion=ref("Version"),
        toVersion=ref("Version"),
    )


def job() -> JSON:
    return closed(
        id=ID,
        kind=TEXT,
        state={"enum": ["queued", "running", "done", "failed"]},
        done=WHOLE,
        total=maybe(WHOLE),
        result=ANY,
        error=maybe(TEXT),
        createdAt=TIME,
        startedAt=maybe(TIME),
        finishedAt=maybe(TIME),
    )


def add(found: dict[str, JSON], name: str, *parts: type[BaseModel]) -> None:
    """One schema of several shapes side by side; what they refer to stands beside it."""
    properties: JSON = {}
    required: list[str] = []
    for part in parts:
        schema = part.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
        found |= schema.pop("$defs", {})
        properties |= schema["properties"]
        required += schema.get("required", [])
    found[name] = {"type": "object", "properties": properties, **({"required": required} if required else {})}


def agent(configuration: JSON) -> JSON:
    fields = {
        name: {key: value for key, value in schema.items() if key != "default"}
        for name, schema in configuration["properties"].items()
    }
    return closed(
        id=TEXT,
        **fields,
        ownerId=TEXT,
        activeVersionId=ID,
        activeVersionNumber=WHOLE,
        headVersionId=ID,
        headVersionNumber=WHOLE,
        resolvedVersionId=ID,
        hasDraft=FLAG,
        revision=WHOLE,
        createdAt=TIME,
        updatedAt=TIME,
        warnings=many(ref("Warning")),
    )


def version() -> JSON:
    return closed(
        id=ID,
        agentId=TEXT,
        versionNumber=WHOLE,
        name=TEXT,
        snapshot=ref("Configuration"),
        changedFields=many(TEXT),
        changeMessage=TEXT,
        createdAt=TIME,
        author=maybe(TEXT),
        source=TEXT,
        basedOn=maybe(WHOLE),
        pinned=FLAG,
        isActive=FLAG,
        isHead=FLAG,
    )


def activation() -> JSON:
    return closed(
        id=WHOLE,
        fromVersionId=maybe(ID),
        fromVersionNumber=maybe(WHOLE),
        toVersionId=ID,
        toVersionNumber=WHOLE,
        author=maybe(TEXT),
        source=TEXT,
        reason=TEXT,
        createdAt=TIME,
    )
