"""Cells of CSV files. A cell that begins with { or [ is JSON; spreadsheets must not run a text as a formula."""

from __future__ import annotations

import json

from agentcms.wire.canonical import normalize
from agentcms.wire.json_parser import parse_strict_json

JSON_STARTS = ("{", "[")
# A spreadsheet runs a cell with one of these as a formula, also after a tab or a line break, and in East Asian width.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", *"\uff1d\uff0b\uff0d\uff20")
QUOTE = "'"


def text_to_cell(text: str) -> str:
    """Return the cell for a text. A leading ' marks a text that is neither a formula nor JSON, and not blank."""
    needs_quote = not text or text.startswith((*FORMULA_STARTS, *JSON_STARTS, QUOTE))
    return QUOTE + text if needs_quote else text


def cell_to_text(cell: str) -> str | None:
    """Return the text of a cell, or None for a blank cell."""
    if not cell:
        return None
    rest = cell[1:]
    is_quoted = cell.startswith(QUOTE) and (not rest or rest.startswith((*FORMULA_STARTS, *JSON_STARTS, QUOTE)))
    return rest if is_quoted else cell


def cell_to_value(cell: str) -> object:
    """Return the value of a cell: JSON if it begins with { or [, else the text. Raise InvalidJSON."""
    return parse_strict_json(cell.encode()) if cell.startswith(JSON_STARTS) else cell_to_text(cell)


def cell_to_json(cell: str) -> object:
    """Return the value of a cell that is JSON whatever it begins with. Raise InvalidJSON."""
    return parse_strict_json((cell_to_text(cell) or "").encode())


def value_to_json(value: object) -> str:
    """Return the JSON of a value, in which both databases have equal numbers."""
    return json.dumps(normalize(value), ensure_ascii=False, separators=(",", ":"))


def value_to_cell(value: object) -> str:
    """Return the cell for a text, an object or a list. None is blank."""
    if value is None:
        return ""
    return text_to_cell(value) if isinstance(value, str) else value_to_json(value)


def json_to_cell(value: object) -> str:
    """Return the cell for a value of a column of JSON."""
    text = value_to_json(value)
    return QUOTE + text if text.startswith(FORMULA_STARTS) else text
