"""Short names for parts of JSON Schema."""

from __future__ import annotations

from agentcms.wire.json_types import JSONObject

OBJECT: JSONObject = {"type": "object"}
STRING: JSONObject = {"type": "string"}
INTEGER: JSONObject = {"type": "integer"}
BOOLEAN: JSONObject = {"type": "boolean"}
DATE_TIME: JSONObject = {"type": "string", "format": "date-time"}
UUID_STRING: JSONObject = {"type": "string", "format": "uuid"}
ANY: JSONObject = {}


def nullable(schema: JSONObject) -> JSONObject:
    return {"anyOf": [schema, {"type": "null"}]}


def ref(name: str) -> JSONObject:
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(schema: JSONObject) -> JSONObject:
    return {"type": "array", "items": schema}


def object_of(**fields: JSONObject) -> JSONObject:
    """Return the schema of an object with these members, all required."""
    return {"type": "object", "required": list(fields), "properties": fields}


def body_of(required: JSONObject, **optional: JSONObject) -> JSONObject:
    """Return the schema of a body with required and optional members."""
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def page_of(key: str, item: str, **more: JSONObject) -> JSONObject:
    fields = {key: array_of(ref(item)), **more}
    return with_optional_warnings(object_of(**fields, total=INTEGER, page=INTEGER, perPage=INTEGER, hasMore=BOOLEAN))


def with_optional_warnings(schema: JSONObject) -> JSONObject:
    """Return the schema of an object with `warnings` where the request had unknown names."""
    return {**schema, "properties": {**schema["properties"], "warnings": array_of(ref("Warning"))}}


PAGINATION = object_of(total=INTEGER, page=INTEGER, perPage=INTEGER, hasMore=BOOLEAN)


def paged_schema(key: str, item: str) -> JSONObject:
    """Return the schema of a page whose numbers are in `pagination`."""
    return with_optional_warnings(object_of(**{key: array_of(ref(item)), "pagination": PAGINATION}))


def order_query(*fields: str) -> JSONObject:
    """Return the query parameter `orderBy` with these fields."""
    order = {
        "type": "object",
        "properties": {"field": {"enum": list(fields)}, "direction": {"enum": ["ASC", "DESC"]}},
    }
    return {"name": "orderBy", "style": "deepObject", "explode": True, "schema": order}
