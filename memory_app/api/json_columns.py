"""Filters by the content of JSON columns, on both databases."""

from __future__ import annotations

import json
from typing import TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

from agentcms.wire.json_types import JSONObject

Row = TypeVar("Row", bound=Model)


def containing_json(rows: QuerySet[Row], column: str, value: JSONObject) -> QuerySet[Row]:
    """Filter to rows whose column has the same JSON value at each path of the given one, if it has any."""
    if not value:
        return rows
    if connection.vendor == "postgresql":
        return rows.filter(**{f"{column}__contains": value})
    # SQLite cannot search inside of JSON. This is a function that the connection registers.
    condition = f"json_holds(coalesce({rows.model._meta.db_table}.{column}, '{{}}'), %s)"
    return rows.extra(where=[condition], params=[json.dumps(value)])  # noqa: S610  the value is a parameter
