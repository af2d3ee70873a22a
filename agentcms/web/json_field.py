"""A field of JSON in a form."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agentcms.wire.json_parser import InvalidJSON, parse_typed_json


class ParsedJSONField(forms.JSONField):
    """JSON, parsed as by the API: deep nesting and what a database cannot store are errors."""

    def to_python(self, value: object) -> Any:
        if value in self.empty_values or not isinstance(value, str):
            return super().to_python(value)
        try:
            # The parser refuses half of a surrogate pair as it refuses other faults. `encode` alone would raise.
            return parse_typed_json(value)
        except InvalidJSON:
            raise ValidationError(self.error_messages["invalid"], code="invalid", params={"value": value}) from None

    def bound_data(self, data: object, initial: object) -> object:
        # As it was typed. Django would parse it to format it again, which changes numbers and repeated keys.
        return data

    def prepare_value(self, value: object) -> Any:
        """Format a stored value; None is blank. Input is displayed again unchanged."""
        if value is None:
            return ""
        return value if isinstance(value, str) else super().prepare_value(value)
