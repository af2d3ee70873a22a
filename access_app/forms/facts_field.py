"""The form field of the facts about the caller of an API key."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError

from agentcms.web.json_field import ParsedJSONField
from agentcms.wire.json_types import JSONObject
from agentcms.wire.validation import find_json_faults

INVALID_JSON = 'This is not valid JSON. Enter an object, such as {"plan": "pro"}.'
NO_COLON = "Line %(line)s has no name. Write each fact as name: value, such as plan: pro."


class FactsField(ParsedJSONField):
    """Facts, one per line as `name: value`. A value that reads as a number, true or false is one.

    An object in JSON is a fact for each of its members, for values that are lists or objects.
    """

    def __init__(self, **options: Any) -> None:
        defaults: dict[str, Any] = {"required": False, "label": "Facts about the caller"}
        super().__init__(**{**defaults, "error_messages": {"invalid": INVALID_JSON}, **options})

    def to_python(self, value: object) -> Any:
        if not isinstance(value, str) or value.lstrip().startswith(("{", "[")):
            return super().to_python(value)
        facts: JSONObject = {}
        for number, line in enumerate(value.splitlines(), 1):
            name, colon, text = (part.strip() for part in line.partition(":"))
            if not line.strip():
                continue
            if not (name and colon):
                raise ValidationError(NO_COLON, code="invalid", params={"line": number})
            if name in facts:
                raise ValidationError(f"“{name}” is set twice. Remove one of them.", code="invalid")
            facts[name] = parse_fact(text)
        return facts or None

    def validate(self, value: object) -> None:
        """Reject what the database cannot store, such as a NUL character."""
        super().validate(value)
        if faults := [*find_json_faults(value, "")]:
            messages = [f"{fault.field}: {fault.message}" if fault.field else fault.message for fault in faults]
            raise ValidationError(messages, code="invalid")


def parse_fact(text: str) -> object:
    """Return a number, true, false or a quoted text as its value, and any other text as it is."""
    if text.startswith(("[", "{")):
        return text
    try:
        # JSON has no NaN and no Infinity, which Python would read as numbers: they stay texts.
        value = json.loads(text, parse_constant=str, parse_int=number_or_text, parse_float=number_or_text)
    except ValueError:
        return text
    return text if value is None else value


def number_or_text(digits: str) -> int | float | str:
    """Return the number, or the text itself if no database stores such a number. It may be that of an account."""
    try:
        number: int | float = int(digits)
    except ValueError:  # a decimal, or too many digits for Python
        number = float(digits)
    return digits if any(find_json_faults(number)) else number
