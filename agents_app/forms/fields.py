"""Form fields that keep what people type: nothing trimmed, JSON read as strictly as the API reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from agentcms.wire.canonical import canonical
from agentcms.wire.json_parser import InvalidJSON, parse


class RawTextField(forms.CharField):
    """A text as it was typed. Browsers send line ends as CR LF; they come back as they are stored, LF."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"strip": False, **options})

    def to_python(self, value: Any) -> str | None:
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if text else text

    def has_changed(self, initial: Any, data: Any) -> bool:
        return (self.to_python(initial) or "") != (self.to_python(data) or "")


class OptionalKeyField(RawTextField):
    """A key, or None where nothing is named."""

    def to_python(self, value: Any) -> str | None:
        return super().to_python(value) or None


class OwnerField(forms.ChoiceField):
    """One of some owners. The blank one, which is the shared space, is a choice like any other."""

    default_error_messages: ClassVar = {
        "invalid_choice": "You may not create agents there. Choose one of your owners.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "label": "Owner", **options})

    def offer(self, owners: Iterable[str]) -> None:
        self.choices = [(owner, owner or "Shared space") for owner in owners]

    def validate(self, value: Any) -> None:
        if not self.valid_value(value):
            raise ValidationError(self.error_messages["invalid_choice"], code="invalid_choice")


class StrictJSONField(forms.JSONField):
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


class JSONNumberField(RawTextField):
    """A number as JSON writes it, kept digit by digit; None where nothing is set."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
        super().__init__(**{"widget": widget, "max_length": 40, **options})

    @staticmethod
    def takes(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text or not text.strip():
            return None
        try:
            number = parse(text.strip().encode("utf-8", "surrogatepass"))
        except InvalidJSON:
            number = None
        if not self.takes(number):
            raise ValidationError("This must be a number, such as 0.7.", code="invalid")
        return number

    def validate(self, value: Any) -> None:
        """What could be read is a number."""

    def run_validators(self, value: Any) -> None:
        """The limits of a text do not apply to a number."""


class KeyListField(forms.Field):
    """A list of keys, each sent once per box that is ticked."""

    widget = forms.MultipleHiddenInput

    def to_python(self, value: Any) -> list[str]:
        return list(dict.fromkeys(value or ()))


class ScorersWidget(forms.MultipleHiddenInput):
    """Reads one box per scorer, and beside it how often it scores: `<name>-<key>-type` and `-amount`."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        chosen = data.getlist(name) if hasattr(data, "getlist") else data.get(name, [])
        return {
            key: (data.get(f"{name}-{key}-type", ""), data.get(f"{name}-{key}-amount", ""))
            for key in dict.fromkeys(chosen)
        }


class ScorersField(forms.Field):
    """Scorers by key with their sampling, as two texts each: the type and the amount."""

    widget = ScorersWidget
    AMOUNTS: ClassVar = {"ratio": "rate", "count": "count"}

    def clean(self, value: Any) -> dict[str, Any]:
        return {key: self.sampled(key, *texts) for key, texts in (value or {}).items()}

    def sampled(self, key: str, kind: str, amount: str) -> dict[str, Any]:
        if kind not in self.AMOUNTS:
            return {}
        try:
            number = parse(amount.strip().encode("utf-8", "surrogatepass"))
        except InvalidJSON as error:
            raise ValidationError(f"{key}: how often must be a number.", code="invalid") from error
        return {"sampling": {"type": kind, self.AMOUNTS[kind]: number}}

    def has_changed(self, initial: Any, data: Any) -> bool:
        return True
