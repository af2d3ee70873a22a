"""JSON values as texts that people edit."""

from __future__ import annotations

import json

from agentcms.wire.json_parser import InvalidJSON, parse_typed_json


def text_of_json(value: object) -> str:
    """Return a JSON value as people edit it: a text as it is, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def edited_value(text: str, before: object) -> object:
    """Return the value of a text that people may have edited. An unchanged text keeps the value that it shows."""
    is_unchanged = text.replace("\r\n", "\n") == text_of_json(before).replace("\r\n", "\n")
    return before if is_unchanged else json_of_text(text)


def json_of_text(text: str) -> object:
    """Return the value of what people typed: JSON if it is an object or a list, else a text. Blank is None."""
    text = text.replace("\r\n", "\n").strip()  # browsers send line breaks as \r\n
    if text[:1] in ("{", "["):
        try:
            # Half a surrogate pair makes the JSON invalid, where a plain `encode` would raise an error.
            return parse_typed_json(text)
        except InvalidJSON:
            return text
    return text or None
