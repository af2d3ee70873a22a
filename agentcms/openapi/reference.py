"""The content of the API reference, from the OpenAPI document: routes with their fields and examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlencode

from agentcms.openapi.document import build_document
from agentcms.web.code_examples import CodeExample, ExampleRequest, code_examples
from agentcms.wire.json_types import JSONObject

MAX_FIELD_DEPTH = 3
RESPONSE_KINDS = {"text/event-stream": "events", "application/x-ndjson": "lines"}
SUBJECT_ORDER = (
    "Agents",
    "Versions",
    "Live history",
    "Running agents",
    "Runs",
    "Approvals",
    "Conversations",
    "Trash",
    "Export and import",
)
QUERY_EXAMPLES = {"from": "live", "to": "head"}


class FieldDoc(NamedTuple):
    """A parameter or a field. `path` has the names of the fields around it; `schema` names a schema to link to."""

    path: str
    type: str
    schema: str
    required: bool
    default: str
    description: str
    place: str = ""


class BodyDoc(NamedTuple):
    """A request body or a response."""

    status: str
    media_type: str
    type: str
    schema: str
    required: bool
    description: str
    fields: list[FieldDoc]


class RouteDoc(NamedTuple):
    """A method of a path."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[FieldDoc]
    body: BodyDoc | None
    responses: list[BodyDoc]
    errors: list[BodyDoc]
    examples: list[CodeExample]

    @property
    def title(self) -> str:
        """The summary without its explanation, for the list of routes."""
        return self.summary.partition(":")[0]


class RouteGroup(NamedTuple):
    """The routes of one subject."""

    title: str
    routes: list[RouteDoc]


class SchemaDoc(NamedTuple):
    """A schema that fields refer to."""

    name: str
    description: str
    fields: list[FieldDoc]


def route_groups(origin: str) -> list[RouteGroup]:
    """Return all routes by subject, with examples for the server at an origin, such as https://cms.example.org."""
    groups: dict[str, list[RouteDoc]] = {}
    for path, operations in build_document()["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append(build_route(origin, path, method, operation))
    subjects = [subject for subject in SUBJECT_ORDER if subject in groups]
    return [RouteGroup(title, groups[title]) for title in dict.fromkeys([*subjects, *groups])]


def build_route(origin: str, path: str, method: str, operation: JSONObject) -> RouteDoc:
    responses = [build_body(status, response) for status, response in sorted(operation["responses"].items())]
    body = operation.get("requestBody")
    return RouteDoc(
        operation["operationId"],
        method.upper(),
        path,
        operation["summary"],
        operation["description"],
        [field for parameter in operation["parameters"] for field in parameter_fields(parameter)],
        build_body("", body) if body else None,
        [response for response in responses if response.status < "400"],
        [response for response in responses if response.status >= "400"],
        code_examples(example_request(origin, path, method, operation)),
    )


def parameter_fields(parameter: JSONObject) -> Iterator[FieldDoc]:
    """Yield a parameter; one in brackets, such as orderBy[field], as several."""
    name, text = parameter["name"], parameter.get("description", "")
    schema = parameter.get("schema") or next(iter(parameter["content"].values()))["schema"]
    if parameter.get("style") != "deepObject":
        field = build_reference_field(name, {**schema, "description": text}, parameter.get("required", False))
        yield field._replace(place=parameter["in"])
        return
    for part, value in schema["properties"].items():
        described = {**value, "description": text, "default": schema.get("default", {}).get(part)}
        yield build_reference_field(f"{name}[{part}]", described, required=False)._replace(place=parameter["in"])


def build_body(status: str, body: JSONObject) -> BodyDoc:
    """Return a request body or a response of an operation. A response may have no content."""
    media_type, content = first_content(body)
    schema = content.get("schema", {})
    return BodyDoc(
        status,
        media_type,
        type_text(schema) if content else "",
        linked_schema(schema),
        body.get("required", False),
        body.get("description", ""),
        [*schema_fields(schema)],
    )


def first_content(body: JSONObject) -> tuple[str, JSONObject]:
    """Return the media type of a body with its schema and example. Both are empty if it has no content."""
    empty: tuple[str, JSONObject] = ("", {})
    return next(iter(body.get("content", {}).items()), empty)


def schemas() -> list[SchemaDoc]:
    """Return the schemas with fields, by name."""
    components = build_document()["components"]["schemas"]
    described = [
        SchemaDoc(name, schema.get("description", ""), [*schema_fields(schema)])
        for name, schema in sorted(components.items())
    ]
    return [schema for schema in described if schema.fields]


# --- Fields and types


def resolve_reference(schema: JSONObject) -> JSONObject:
    """Return the schema that a reference names, or the schema itself."""
    name = schema_name(schema) if "$ref" in schema else ""
    component: JSONObject = build_document()["components"]["schemas"][name] if name else schema
    return component


def members(schema: JSONObject) -> tuple[JSONObject, set[str]]:
    """Return the fields of an object by name, and the required ones, also of combined schemas."""
    schema = resolve_reference(schema)
    properties: JSONObject = dict(schema.get("properties", {}))
    required = set(schema.get("required", ()))
    for key in ("allOf", "anyOf"):
        parts = [members(part) for part in schema.get(key, ())]
        for fields, _ in parts:
            properties |= {name: value for name, value in fields.items() if name not in properties}
        if parts:
            # Of alternatives, a field is required only if each of them requires it.
            combine = set.union if key == "allOf" else set.intersection
            required |= combine(*(names for _, names in parts))
    return properties, required


def schema_fields(schema: JSONObject, prefix: str = "", depth: int = 1) -> Iterator[FieldDoc]:
    """Yield the fields of an object, each followed by the fields of an object inside that has no name."""
    properties, required = members(schema)
    for name, value in sorted(properties.items(), key=lambda field: field[0] not in required):
        path = f"{prefix}{name}"
        yield build_reference_field(path, value, name in required)
        inner, brackets = (value["items"], "[]") if "items" in value else (value, "")
        if depth < MAX_FIELD_DEPTH and not schema_name(inner):
            yield from schema_fields(inner, f"{path}{brackets}.", depth + 1)


def build_reference_field(path: str, schema: JSONObject, required: bool) -> FieldDoc:
    default = schema.get("default")
    return FieldDoc(
        path,
        type_text(schema),
        linked_schema(schema),
        required,
        "" if default in (None, "", [], {}) else json.dumps(default, ensure_ascii=False),
        schema.get("description", ""),
    )


def linked_schema(schema: JSONObject) -> str:
    """Return the name of the schema that a field refers to, if that schema has fields, or ""."""
    name = schema_name(schema)
    return name if name in schemas_with_fields() else ""


@cache
def schemas_with_fields() -> set[str]:
    components = build_document()["components"]["schemas"]
    return {name for name, schema in components.items() if members(schema)[0]}


def schema_name(schema: JSONObject) -> str:
    """Return the name of the schema that a field, its items or one of its alternatives refers to, or ""."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    parts = [*schema.get("anyOf", ()), schema.get("items"), schema.get("additionalProperties")]
    return next((name for part in parts if isinstance(part, dict) and (name := schema_name(part))), "")


def type_text(schema: JSONObject) -> str:
    """Return the type of a field in words: "list of Agent", "integer, 1 to 1000", "text or null"."""
    if "$ref" in schema:
        return schema_name(schema)
    if "enum" in schema:
        return " · ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_text(part) for part in schema["anyOf"]))
    match schema.get("type"):
        case "array":
            return f"list of {type_text(schema['items'])}" if schema.get("items") else "list"
        case "object":
            values = schema.get("additionalProperties")
            return f"object of {type_text(values)} by key" if isinstance(values, dict) and values else "object"
        case "string":
            return string_type(schema)
        case "integer" | "number" as kind:
            return f"{kind}{allowed_range_text(schema)}"
        case str(kind):
            return {"boolean": "boolean", "null": "null"}.get(kind, kind)
    return "any JSON value"


def string_type(schema: JSONObject) -> str:
    if schema.get("format") in ("date-time", "uuid"):
        return {"date-time": "time (ISO 8601)", "uuid": "UUID"}[schema["format"]]
    return f"text, at most {schema['maxLength']} characters" if "maxLength" in schema else "text"


def allowed_range_text(schema: JSONObject) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    high = None if high == 2**31 - 1 else high  # the limit of the database
    if low is not None and high is not None:
        return f", {low} to {high}"
    return f", at least {low}" if low is not None else f", at most {high}" if high is not None else ""


# --- Examples


def example_request(origin: str, path: str, method: str, operation: JSONObject) -> ExampleRequest:
    """Return a request with the examples of the document."""
    parameters = operation["parameters"]
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
    query = {
        item["name"]: QUERY_EXAMPLES[item["name"]]
        for item in parameters
        if item["in"] == "query" and item.get("required")
    }
    media_type, content = first_content(operation.get("requestBody", {}))
    is_file = media_type == "application/x-ndjson"
    success = next(response for status, response in operation["responses"].items() if status < "300")
    return ExampleRequest(
        method.upper(),
        f"{origin}{path}{'?' + urlencode(query) if query else ''}",
        None if is_file else content.get("example", {} if content else None),
        is_file,
        RESPONSE_KINDS.get(next(iter(success["content"])), "json"),
    )


def reference_context(origin: str) -> dict[str, Any]:
    """Return the context of the page for an origin."""
    return {"groups": route_groups(origin), "schemas": schemas(), "origin": origin}
