"""Conditions of queries on lists of texts in JSON columns, which are the same on both databases."""

from __future__ import annotations

from django.db import connection, models
from django.db.models import Func, Q, Value


class ListHasText(Func):
    """Condition that a list of texts in JSON has a text, for SQLite, where Django has no `contains` for JSON."""

    # Together: EXISTS (SELECT 1 FROM json_each(tags) WHERE value = %s)
    arg_joiner = ") WHERE value = "
    template = "EXISTS (SELECT 1 FROM json_each(%(expressions)s)"
    output_field = models.BooleanField()


def list_has(column: str, text: str) -> Q:
    """Return the condition for rows whose list has a text."""
    if connection.vendor == "postgresql":
        return Q((f"{column}__contains", [text]))
    return Q(ListHasText(column, Value(text)))
