"""The words that the description of the API is written in: JSON Schema, by short names."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


TEXT: JSON = {"type": "string"}
WHOLE: JSON = {"type": "integer"}
FLAG: JSON = {"type": "boolean"}
TIME: JSON = {"type": "string", "format": "date-time"}
ID: JSON = {"type": "string", "format": "uuid"}
ANY: JSON = {}


def maybe(schema: JSON) -> JSON:
    return {"anyOf": [schema, {"type": "null"}]}


def ref(name: str) -> JSON:
    return {"$ref": f"#/components/schemas/{name}"}


def many(schema: JSON) -> JSON:
    return {"type": "array", "items": schema}


def closed(**fields: JSON) -> JSON:
    """An object with these members, all of them always there."""
    return {"type": "object", "required": list(fields), "properties": fields}


def page(key: str, item: str) -> JSON:
    return closed(**{key: many(ref(item))}, total=WHOLE, page=WHOLE, perPage=WHOLE, hasMore=FLAG)
