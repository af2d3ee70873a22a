"""Form fields that store input unchanged and parse JSON as strictly as the API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from access_app.role import SHARED_LABEL
from access_app.teams import TEAM_PLACEHOLDER, can_be_offered
from agentcms.web.json_field import ParsedJSONField
from agentcms.web.text_direction import PersonTextField
from agentcms.wire.canonical import canonical
from agentcms.wire.json_parser import InvalidJSON, parse_typed_json
from agentcms.wire.json_types import JSONObject
from agents_app.forms.objects.members import (
    InputError,
    format_json,
    normalize_line,
    normalize_lines,
    parse_json,
    parse_number,
    path_error,
)
from agents_app.forms.ordering import sort_by_position

SHARED_HELP = f"Leave blank for {SHARED_LABEL}."
ID_HELP = "Used in URLs and the API; cannot be changed."


def id_taken_message(agent_id: str) -> str:
    return f"The ID {agent_id} is already taken. Choose another one."


class RawTextField(PersonTextField):
    """A text that is not trimmed. Line ends, which browsers send as CR LF, are stored as LF."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"strip": False, **options})

    def to_python(self, value: Any) -> str | None:
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if text else text

    def restore(self, text: str, stored: str) -> str:
        """Return the stored text if the input shows it as the submitted one: an input changes line ends."""
        shows = normalize_line if isinstance(self.widget, forms.TextInput) else normalize_lines
        return stored if text == shows(stored) else text

    def has_changed(self, initial: Any, data: Any) -> bool:
        return (self.to_python(initial) or "") != (self.to_python(data) or "")


class InputGroupField(forms.Field):
    """Inputs that a template renders and the form reads itself. The field has their label and their errors."""

    widget = forms.Widget

    def __init__(self, label: str) -> None:
        super().__init__(required=False, label=label)


class OptionalKeyField(RawTextField):
    """A key, or None if empty."""

    def to_python(self, value: Any) -> str | None:
        return super().to_python(value) or None

    def bound_data(self, data: Any, initial: Any) -> object:
        # The select has the stored key as a choice, and a browser sends its line ends in another form.
        return self.restore(normalize_lines(data), initial) if data and initial else data


class OwnerField(forms.ChoiceField):
    """A choice of owners, including the blank one for shared agents."""

    default_error_messages: ClassVar = {
        "invalid_choice": "You cannot create agents for this team. Choose one of your teams.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "label": "Team", **options})

    def set_owners(self, owners: Sequence[str]) -> None:
        """Offer these owners, or ask for the ID of one of them if they are very many."""
        self.choices = [(owner, owner or SHARED_LABEL) for owner in owners]
        if not can_be_offered(owners):
            self.widget = forms.TextInput(
                {"placeholder": TEAM_PLACEHOLDER, "dir": "auto", "autocomplete": "off", "spellcheck": "false"}
            )

    def validate(self, value: Any) -> None:
        # Django does not check a blank value, but the blank owner is a choice that not everybody has.
        if not self.valid_value(value):
            raise ValidationError(self.error_messages["invalid_choice"], code="invalid_choice")


class StrictJSONField(ParsedJSONField):
    """JSON, parsed as by the API, whose faults are reported with their positions. Nothing is `empty()`."""

    def __init__(self, *, empty: Any = dict, **options: Any) -> None:
        super().__init__(**options)
        self.empty = empty

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values:
            return self.empty()
        return parse_json(value) if isinstance(value, str) else value

    def prepare_value(self, value: Any) -> Any:
        """Format a stored value with indentation."""
        return super().prepare_value(value if value is None or isinstance(value, str) else format_json(value))

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

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return parse_number(text) if text and text.strip() else None

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return super().has_changed(initial, data)
        except ValidationError:
            return True

    def validate(self, value: Any) -> None:
        """Skip the checks of a text field: `to_python` already returned a number."""

    def run_validators(self, value: Any) -> None:
        """Skip the validators of a text field, such as its length."""


class KeyListWidget(forms.MultipleHiddenInput):
    """A widget that reads one checkbox per key, in order. Without scripts, `<name>-<n>-position` moves the nth key."""

    is_hidden = False  # the page has a checkbox for each key, and a place for the error

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        keys = super().value_from_datadict(data, files, name) or []
        return sort_by_position(keys, [data.get(f"{name}-{index}-position") for index in range(1, len(keys) + 1)])


class KeyListField(forms.Field):
    """A list of keys in order, sent by one checkbox each."""

    widget = KeyListWidget

    def to_python(self, value: Any) -> list[str]:
        return list(filter(None, value or ()))

    def bound_data(self, data: Any, initial: Any) -> list[str]:
        # Also where the fields are shown again: of two keys that differ in their line ends, one would be lost.
        return self.restore(data or (), initial or ())

    def restore(self, keys: Iterable[str], stored: Iterable[str]) -> list[str]:
        """Return the keys, each once, with the stored line ends, which a browser changes when it sends them."""
        # A list for each, because two stored keys may differ in their line ends alone.
        stored_keys: dict[str, list[str]] = {}
        for key in stored:
            stored_keys.setdefault(normalize_lines(key), []).append(key)
        restored = []
        for key in keys:
            same = stored_keys.get(normalize_lines(key))
            restored.append(same.pop(0) if same else key)
        return list(dict.fromkeys(restored))


class ScorersWidget(forms.MultipleHiddenInput):
    """A widget that reads one checkbox per scorer and its sampling, `<name>-<key>-type` and `<name>-<key>-amount`."""

    is_hidden = False

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        chosen = data.getlist(name) if hasattr(data, "getlist") else data.get(name, [])
        return {
            key: (data.get(f"{name}-{key}-type", ""), data.get(f"{name}-{key}-amount", ""))
            for key in dict.fromkeys(chosen)
        }


def sampling_error(key: str, message: str) -> InputError:
    """Return the error at the amount of the sampling of a scorer."""
    return InputError(f"Sampling of {key}: {message}", f"scorers-{key}-amount:0", message)


def scorer_error(path: str, message: str) -> ValidationError:
    """Return the error for an issue at a path of the scorers, such as `answer-length.sampling.rate`."""
    key, part, _ = path.rpartition(".sampling.")
    return sampling_error(key, message) if part else path_error(path, message)


class ScorersField(forms.Field):
    """Scorers by key, with the type and amount of their sampling."""

    widget = ScorersWidget
    AMOUNTS: ClassVar = {"ratio": "rate", "count": "count"}

    def clean(self, value: Any) -> dict[str, Any]:
        sampling, errors = {}, []
        for key, texts in (value or {}).items():
            try:
                sampling[key] = self.parse_sampling(key, *texts)
            except InputError as error:
                errors.append(error)
        if errors:
            raise ValidationError(errors)
        return sampling

    def parse_sampling(self, key: str, kind: str, amount: str) -> JSONObject:
        if kind not in self.AMOUNTS:
            return {}
        try:
            number = parse_typed_json(amount.strip())
        except InvalidJSON as error:
            raise sampling_error(key, "Enter a number.") from error
        return {"sampling": {"type": kind, self.AMOUNTS[kind]: number}}

    def has_changed(self, initial: Any, data: Any) -> bool:
        # The submitted texts say nothing without the stored members that have no input. The form compares the values.
        return True
