"""The OpenAPI 3.1 document, built from the sections and the validation models of the domain."""

from __future__ import annotations

from collections import ChainMap
from functools import cache
from typing import Any, Literal

from agentcms.cache import cache_result
from agentcms.openapi.agents.agents import agent_schema
from agentcms.openapi.field_descriptions import FIELD_DESCRIPTIONS
from agentcms.openapi.idempotency import KEY_PARAMETER, takes_key
from agentcms.openapi.json_schema import STRING, ref
from agentcms.openapi.operations import Operation
from agentcms.openapi.parameters import PARAMETER_DESCRIPTIONS, QUERY_PARAMETERS
from agentcms.openapi.section import ApiSection, Models
from agentcms.openapi.sections import SECTIONS
from agentcms.wire.json_types import JSONObject

# Media types of bodies and responses that are not JSON.
MEDIA_TYPES = {
    "Lines": ("application/x-ndjson",),
    "ItemLines": ("application/x-ndjson", "text/csv", "application/json"),
    "Events": ("text/event-stream",),
}
JSON_ALONE = ("application/json",)
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
    422: "The Idempotency-Key was used for another request, a decision does not fit, or the body names a program.",
    424: "The run failed; the message has the reason.",
    429: "Too many requests or jobs: retry after the seconds in Retry-After. Or too many files: delete some.",
    501: "Not supported.",
    503: "A lock was not available in time; retry after the seconds in Retry-After.",
}


@cache_result
def build_document() -> JSONObject:
    """Return the whole document."""
    paths: dict[str, JSONObject] = {}
    for section in SECTIONS:
        for operation in section.operations:
            paths.setdefault(operation.path, {})[operation.method] = operation_object(section, operation)
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


@cache
def merged(name: Literal["fields", "query"]) -> dict[str, Any]:
    """Return the descriptions of the fields or of the query parameters of all sections."""
    return dict(ChainMap(*(getattr(section, name) for section in SECTIONS)))


def operation_object(section: ApiSection, operation: Operation) -> JSONObject:
    """Return the OpenAPI object of an operation."""
    result: JSONObject = {
        "operationId": operation.id,
        "tags": [subject(section, operation)],
        "summary": operation.summary,
        "description": section.descriptions.get(operation.id, ""),
        "parameters": parameters(section, operation),
        "responses": {
            str(operation.status): success_response_object(operation),
            **{str(status): error_response(status) for status in sorted(error_statuses(operation))},
        },
    }
    if operation.id in ("getAcpAgent", "getAgent", "getMcpClient"):
        result["responses"]["304"] = {"description": "Not modified, according to If-None-Match."}
    if operation.id in ("addParticipant", "exportAgents"):  # who takes part already, or the last export if it is equal
        result["responses"]["200"] = success_response_object(operation)
    if operation.body:
        media_type = MEDIA_TYPES.get(operation.body, JSON_ALONE)[0]
        content: JSONObject = {"schema": ref(operation.body)}
        if example := section.examples.get(operation.id):
            content["example"] = example
        result["requestBody"] = {"required": is_required(operation.body), "content": {media_type: content}}
    return result


def is_required(body: str) -> bool:
    """Return whether a request must have a body: if it has required fields, or is not JSON."""
    schema = component_schemas()[body]
    parts = [schema, *schema.get("allOf", ())]
    return body in MEDIA_TYPES or any(part.get("required") for part in parts)


def subject(section: ApiSection, operation: Operation) -> str:
    """Return the heading of an operation, by which the reference groups the operations."""
    return next(heading for part, heading in section.subjects.items() if part in operation.path)


def parameters(section: ApiSection, operation: Operation) -> list[JSONObject]:
    """Return the parameters of an operation with their meaning."""
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    in_path = [{"name": name, "in": "path", "required": True, "schema": STRING} for name in names]
    known = {**QUERY_PARAMETERS, **merged("query")}
    in_query = [{"name": name, "in": "query", "schema": STRING, **known.get(name, {})} for name in operation.query]
    described = [describe_parameter(section, operation, parameter) for parameter in in_path + in_query]
    return [*described, KEY_PARAMETER] if takes_key(operation) else described


def describe_parameter(section: ApiSection, operation: Operation, parameter: JSONObject) -> JSONObject:
    """Return a parameter with its description, example and default, unless it has its own description."""
    name = parameter["name"]
    own = own_description(section, operation, name)
    described = {
        **PARAMETER_DESCRIPTIONS.get(name, {}),
        **parameter,
        **{key: own[key] for key in own if key != "default"},
    }
    if "default" in own:
        described["schema"] = {**described["schema"], "default": own["default"]}
    return described


def own_description(section: ApiSection, operation: Operation, name: str) -> JSONObject:
    """Return what the section says of a parameter of an operation."""
    if name == "perPage":
        return {"default": section.page_sizes.get(operation.id, section.page_size)}
    return {**section.parameters.get(name, {}), **section.own_parameters.get(operation.id, {}).get(name, {})}


def error_statuses(operation: Operation) -> set[int]:
    """Return the error statuses of an operation: the common ones, those of the method and its own."""
    conflict = () if operation.method == "get" else (409,)  # such as the deletion of something that a write uses
    idempotency = (422,) if operation.method == "post" else ()
    size = (413,) if operation.body else ()
    return {400, 401, 403, 404, 406, 415, 429, 503, *operation.errors, *conflict, *idempotency, *size}


def success_response_object(operation: Operation) -> JSONObject:
    media_types = MEDIA_TYPES.get(operation.response, JSON_ALONE)
    content = {media_type: {"schema": ref(operation.response)} for media_type in media_types}
    return {"description": operation.summary, "content": content}


def error_response(status: int) -> JSONObject:
    return {"description": ERROR_DESCRIPTIONS[status], "content": {"application/json": {"schema": ref("Error")}}}


@cache
def component_schemas() -> dict[str, JSONObject]:
    """Return the schemas of request and response bodies by name."""
    schemas: dict[str, JSONObject] = {}
    for section in SECTIONS:
        for name, schema in section_schemas(section).items():
            schemas[name] = describe_fields(section, name, schema)
    return schemas


def section_schemas(section: ApiSection) -> dict[str, JSONObject]:
    schemas = section.schemas()
    for name, models in section.bodies.items():
        add_model_schema(schemas, name, models)
    if "Configuration" in schemas:
        schemas["Agent"] = agent_schema(schemas["Configuration"])
    return schemas


def describe_fields(section: ApiSection, name: str, schema: JSONObject) -> JSONObject:
    """Return a schema whose fields say what they mean. The shared parts of schemas do not change."""
    described = dict(schema)
    if "properties" in schema:
        described["properties"] = {
            field: describe_fields(section, name, with_description(section, name, field, value))
            for field, value in schema["properties"].items()
        }
    for key in ("anyOf", "allOf"):
        if key in schema:
            described[key] = [describe_fields(section, name, part) for part in schema[key]]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            described[key] = describe_fields(section, name, schema[key])
    return described


def with_description(section: ApiSection, name: str, field: str, schema: JSONObject) -> JSONObject:
    """Return the schema of a field with its text: of this schema, else of its section, else of all sections."""
    exact = f"{name}.{field}"
    texts = ChainMap(FIELD_DESCRIPTIONS, merged("fields"))
    # The meaning of a short name, such as state, differs between sections.
    text = texts.get(exact) or section.fields.get(field) or texts.get(field, "")
    return {"description": text, **schema} if text else schema


def add_model_schema(schemas: dict[str, JSONObject], name: str, models: Models) -> None:
    """Add one schema with the fields of one or several models, and the schemas that they refer to."""
    properties: JSONObject = {}
    required: list[str] = []
    for model in models if isinstance(models, tuple) else (models,):
        schema = model.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        properties |= schema["properties"]
        required += schema.get("required", [])
    schemas[name] = {"type": "object", "properties": properties, **({"required": required} if required else {})}
