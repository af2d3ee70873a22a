"""A name for values of a row."""

from __future__ import annotations

from typing import Any

ColumnValues = dict[str, Any]  # by the name of the field
