"""Filters by the content of JSON columns, on both databases."""

from __future__ import annotations

import json
from itertools import chain
from typing import TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

from agentcms.wire.json_types import JSONObject
from agents_app.models.search_index import json_leaves

Row = TypeVar("Row", bound=Model)


def containing_json(rows: QuerySet[Row], column: str, value: JSONObject) -> QuerySet[Row]:
    """Filter to rows whose column has the same JSON value at each path of the given one, if it has any."""
    if not value:
        return rows
    table = rows.model._meta.db_table
    if connection.vendor == "postgresql":
        rows = rows.filter(**{f"{column}__contains": value})
        # Lists and objects are compared again: `@>` accepts those with more in them.
        exact = [(path, json.dumps(leaf)) for path, leaf in json_leaves(value) if isinstance(leaf, list | dict)]
        conditions = [f"{table}.{column} #> %s::text[] = %s::jsonb"] * len(exact)
        return rows.extra(where=conditions, params=[*chain(*exact)])  # noqa: S610  the values are parameters
    # SQLite cannot search inside of JSON. This is a function that the connection registers.
    condition = f"json_holds(coalesce({table}.{column}, '{{}}'), %s)"
    return rows.extra(where=[condition], params=[json.dumps(value)])  # noqa: S610  the value is a parameter
