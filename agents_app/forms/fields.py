"""Form fields that store input unchanged and parse JSON as strictly as the API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from access_app.role import SHARED_LABEL
from agentcms.wire.canonical import canonical
from agentcms.wire.json_parser import InvalidJSON, parse

SHARED_HELP = f"Leave blank for {SHARED_LABEL}."
ID_HELP = "Used in URLs and the API; cannot be changed."


def id_taken_message(agent_id: str) -> str:
    return f"The ID {agent_id} is already taken. Choose another one."


class RawTextField(forms.CharField):
    """A text that is not trimmed. Line ends, which browsers send as CR LF, are stored as LF."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"strip": False, **options})

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        # A text of a person: the browser finds its direction.
        return {**super().widget_attrs(widget), "dir": "auto"}

    def to_python(self, value: Any) -> str | None:
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if text else text

    def has_changed(self, initial: Any, data: Any) -> bool:
        return (self.to_python(initial) or "") != (self.to_python(data) or "")


class OptionalKeyField(RawTextField):
    """A key, or None if empty."""

    def to_python(self, value: Any) -> str | None:
        return super().to_python(value) or None


class OwnerField(forms.ChoiceField):
    """A choice of owners, including the blank one for shared agents."""

    default_error_messages: ClassVar = {
        "invalid_choice": "You cannot create agents for this team. Choose one of your teams.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "label": "Team", **options})

    def set_owners(self, owners: Iterable[str]) -> None:
        self.choices = [(owner, owner or SHARED_LABEL) for owner in owners]

    def validate(self, value: Any) -> None:
        if not self.valid_value(value):
            raise ValidationError(self.error_messages["invalid_choice"], code="invalid_choice")


class StrictJSONField(forms.JSONField):
    """JSON, parsed as by the API: duplicate keys and numbers that would be rounded are errors with their position."""

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
        """Format a stored value with indentation. Input is displayed again unchanged."""
        if value is None:
            return ""
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return canonical(self.to_python(initial)) != canonical(self.to_python(data))
        except ValidationError:
            return True


class JSONNumberField(RawTextField):
    """A JSON number with all its digits, or None if empty."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
        super().__init__(**{"widget": widget, "max_length": 40, **options})

    @staticmethod
    def is_number(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text or not text.strip():
            return None
        try:
            number = parse(text.strip().encode("utf-8", "surrogatepass"))
        except InvalidJSON:
            number = None
        if not self.is_number(number):
            raise ValidationError("This must be a number, such as 0.7.", code="invalid")
        return number

    def validate(self, value: Any) -> None:
        """Skip the checks of a text field: `to_python` already returned a number."""

    def run_validators(self, value: Any) -> None:
        """Skip the validators of a text field, such as its length."""


class KeyListField(forms.Field):
    """A list of keys, sent by one checkbox each."""

    widget = forms.MultipleHiddenInput

    def to_python(self, value: Any) -> list[str]:
        return list(dict.fromkeys(value or ()))


class ScorersWidget(forms.MultipleHiddenInput):
    """A widget that reads one checkbox per scorer and its sampling, `<name>-<key>-type` and `<name>-<key>-amount`."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        chosen = data.getlist(name) if hasattr(data, "getlist") else data.get(name, [])
        return {
            key: (data.get(f"{name}-{key}-type", ""), data.get(f"{name}-{key}-amount", ""))
            for key in dict.fromkeys(chosen)
        }


class ScorersField(forms.Field):
    """Scorers by key, with the type and amount of their sampling."""

    widget = ScorersWidget
    AMOUNTS: ClassVar = {"ratio": "rate", "count": "count"}

    def clean(self, value: Any) -> dict[str, Any]:
        return {key: self.parse_sampling(key, *texts) for key, texts in (value or {}).items()}

    def parse_sampling(self, key: str, kind: str, amount: str) -> dict[str, Any]:
        if kind not in self.AMOUNTS:
            return {}
        try:
            number = parse(amount.strip().encode("utf-8", "surrogatepass"))
        except InvalidJSON as error:
            raise ValidationError(f"{key}: the sampling must be a number.", code="invalid") from error
        return {"sampling": {"type": kind, self.AMOUNTS[kind]: number}}

    def has_changed(self, initial: Any, data: Any) -> bool:
        return True
