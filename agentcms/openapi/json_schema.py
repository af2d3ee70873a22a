"""Short names for parts of JSON Schema."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]

OBJECT: JSON = {"type": "object"}
STRING: JSON = {"type": "string"}
INTEGER: JSON = {"type": "integer"}
BOOLEAN: JSON = {"type": "boolean"}
DATE_TIME: JSON = {"type": "string", "format": "date-time"}
UUID_STRING: JSON = {"type": "string", "format": "uuid"}
ANY: JSON = {}


def nullable(schema: JSON) -> JSON:
    return {"anyOf": [schema, {"type": "null"}]}


def ref(name: str) -> JSON:
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(schema: JSON) -> JSON:
    return {"type": "array", "items": schema}


def object_of(**fields: JSON) -> JSON:
    """Return the schema of an object with these members, all required."""
    return {"type": "object", "required": list(fields), "properties": fields}


def body_of(required: JSON, **optional: JSON) -> JSON:
    """Return the schema of a body with required and optional members."""
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def page_of(key: str, item: str) -> JSON:
    return with_optional_warnings(
        object_of(**{key: array_of(ref(item))}, total=INTEGER, page=INTEGER, perPage=INTEGER, hasMore=BOOLEAN)
    )


def with_optional_warnings(schema: JSON) -> JSON:
    """Return the schema of an object with `warnings` where the request had unknown names."""
    return {**schema, "properties": {**schema["properties"], "warnings": array_of(ref("Warning"))}}


PAGINATION = object_of(total=INTEGER, page=INTEGER, perPage=INTEGER, hasMore=BOOLEAN)


def paged_schema(key: str, item: str) -> JSON:
    """Return the schema of a page whose numbers are in `pagination`."""
    return with_optional_warnings(object_of(**{key: array_of(ref(item)), "pagination": PAGINATION}))


def order_query(*fields: str) -> JSON:
    """Return the query parameter `orderBy` with these fields."""
    order = {
        "type": "object",
        "properties": {"field": {"enum": list(fields)}, "direction": {"enum": ["ASC", "DESC"]}},
    }
    return {"name": "orderBy", "style": "deepObject", "explode": True, "schema": order}
