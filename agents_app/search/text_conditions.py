"""Conditions of queries on texts, which are the same on both databases."""

from __future__ import annotations

import re

from django.db import connection
from django.db.models import Q


def contains_text(column: str, text: str) -> Q:
    """Return the condition for rows whose column contains a text, in upper or lower case."""
    # LIKE of SQLite ignores the case of the letters A to Z only.
    is_ignored = text.isascii() or connection.vendor == "postgresql"
    return Q((f"{column}__icontains", text)) if is_ignored else Q((f"{column}__iregex", re.escape(text)))
