"""Form fields that keep what people type: nothing trimmed, JSON read as strictly as the API reads it."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agentcms.strict_json import InvalidJSON, parse
from agentcms.wire import canonical


class KeptText(forms.CharField):
    """A text as it was typed. Browsers send line ends as CR LF; they come back as they are stored, LF."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"strip": False, **options})

    def to_python(self, value: Any) -> str | None:
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if text else text

    def has_changed(self, initial: Any, data: Any) -> bool:
        return (self.to_python(initial) or "") != (self.to_python(data) or "")


class OptionalKey(KeptText):
    """A key, or None where nothing is named."""

    def to_python(self, value: Any) -> str | None:
        return super().to_python(value) or None


class StrictJSON(forms.JSONField):
    """JSON as the API reads it: a duplicate key or a number that would be rounded is an error with its place."""

    def __init__(self, *, empty: Any = dict, **options: Any) -> None:
        super().__init__(**options)
        self.empty = empty

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values:
            return self.empty()
        try:
            return parse(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else value
        except InvalidJSON as error:
            raise ValidationError([str(fault.message) for fault in error.faults], code="invalid") from error

    def prepare_value(self, value: Any) -> Any:
        """Stored values are laid out for reading; what was typed is shown again as it was typed."""
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return canonical(self.to_python(initial)) != canonical(self.to_python(data))
        except ValidationError:
            return True
