"""Conditions of queries on texts, which are the same on both databases."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from operator import or_

from django.db import connection
from django.db.models import Q

MAX_SEARCH_WORDS = 20  # SQLite refuses a statement with a condition for each of a thousand words


def contains_text(column: str, text: str) -> Q:
    """Return the condition for rows whose column contains a text, in upper or lower case."""
    return Q((f"{column}__icontains", text)) if like_ignores_case(text) else Q((f"{column}__iregex", re.escape(text)))


def any_contains_text(columns: Iterable[str], text: str) -> Q:
    """Return the condition for rows of which one column contains a text, in upper or lower case."""
    return reduce(or_, (contains_text(column, text) for column in columns))


def begins_with_text(column: str, text: str) -> Q:
    """Return the condition for rows whose column begins with a text, in upper or lower case."""
    if like_ignores_case(text):
        return Q((f"{column}__istartswith", text))
    return Q((f"{column}__iregex", rf"\A{re.escape(text)}"))


def like_ignores_case(text: str) -> bool:
    """Return whether LIKE finds a text in upper and lower case. That of SQLite does so for the letters A to Z only."""
    return text.isascii() or connection.vendor == "postgresql"
