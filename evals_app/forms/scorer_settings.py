"""A form field for the settings of a scorer: inputs for those of its type, or all as JSON.

The names of the inputs of a type, for a field `settings`; a pipeline has a part for each of its steps:

    settings                        the JSON text
    settings-view                   "json" or "fields"; without it, the field is edited as JSON if there is a JSON text
    settings-<type>-<part>-<name>   a setting, as in `objects.field`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.forms.fields import StrictJSONField
from agents_app.forms.form_data import FormData
from agents_app.forms.objects.field import ObjectInputs, is_json_view
from agents_app.forms.objects.members import InputError, Member, format_json
from evals_app.scorers.kinds.checks import CHECKS
from evals_app.scorers.kinds.pipelines import PIPELINE_STEPS
from evals_app.scorers.kinds.trajectory import TRAJECTORY_MODES
from evals_app.scorers.settings import SETTINGS

ROOT = "settings"  # the part with the settings that are in no object


def choices(*values: str) -> tuple[tuple[str, str], ...]:
    return tuple((f'"{value}"', value.capitalize()) for value in values)


CHECK_LABELS = {
    "includes": "Includes a text",
    "equals": "Equals a text",
    "matches": "Matches a pattern",
    "json-schema": "Fits a JSON Schema",
    "called-tool": "Called a tool",
    "no-tool-errors": "No tool failed",
    "max-steps": "Number of steps at most",
    "max-seconds": "Duration at most, in seconds",
    "max-cost": "Cost at most, in dollars",
    "similarity": "Is similar to a text",
}
YES_OR_NO = (("true", "Yes"), ("false", "No"))
CHECK_CHOICES = tuple((f'"{name}"', CHECK_LABELS.get(name, name)) for name in CHECKS)
CHECK_MEMBERS = (
    Member("check", "Check", "choice", choices=CHECK_CHOICES, required=True),
    Member("value", "Expected text", "text", "Blank: the ground truth of the item."),
    Member(
        "values",
        "Expected words",
        "lines",
        "For “Includes a text”: one per line, instead of the expected text.",
        rows=3,
    ),
    Member("caseSensitive", "Case-sensitive", "choice", "No by default.", YES_OR_NO),
    Member("pattern", "Pattern", "text", "A regular expression that occurs in the answer.", required=True),
    Member("schema", "JSON Schema of the answer", "json", required=True, rows=3),
    Member("tool", "Name of the tool", "text", required=True),
    Member("times", "Number of calls", "number", "Blank: at least one."),
    Member("arguments", "Arguments (JSON)", "json", "Calls with other arguments do not count."),
    Member("max", "At most", "number", required=True),
)
TRAJECTORY_MEMBERS = (
    Member(
        "mode",
        "Order",
        "choice",
        "Not set: as the expected steps of the item say, else strict.",
        choices(*TRAJECTORY_MODES),
    ),
    Member("arguments", "Arguments", "choice", "Not set: ignored.", choices("ignore", "compare")),
    Member("maxSteps", "Max steps"),
    Member("forbiddenTools", "Forbidden tools", "lines", "One name per line.", rows=3),
    Member(
        "expected", "Expected calls (JSON)", "json", 'Such as ["search", "answer"]. Blank: the ground truth.', rows=3
    ),
)
STEP_MEMBERS = (
    Member("function", "Function", "text", "The key of a step that is registered in code, instead of a prompt."),
    Member("prompt", "Prompt", "text", "Asks the model. It also reads the results of the earlier steps.", rows=4),
    Member("outputSchema", "JSON Schema of the answer", "json", "For a prompt.", rows=3),
)
STEP_LABELS = dict(zip(PIPELINE_STEPS, ("Preprocess", "Analyze", "Score", "Reason"), strict=True))
DROP_MEMBERS = (
    Member("drop", "Fields to drop", "lines", "One per line: what the steps do not see of an answer.", rows=3),
)
# Of each type its parts, with a heading and their inputs.
SETTING_PARTS: dict[str, dict[str, tuple[str, tuple[Member, ...]]]] = {
    "check": {ROOT: ("", CHECK_MEMBERS)},
    "trajectory": {ROOT: ("", TRAJECTORY_MEMBERS)},
    "pipeline": {
        **{name: (label, STEP_MEMBERS) for name, label in STEP_LABELS.items()},
        "prepareRun": ("Preparation", DROP_MEMBERS),
    },
}


@dataclass
class SettingsInputs:
    """The settings of a scorer of a type in the inputs of a form."""

    kind: str
    parts: dict[str, ObjectInputs]

    @classmethod
    def describe(cls, kind: str, value: JSONMapping) -> SettingsInputs | None:
        """Return the inputs that give settings back unchanged, or None if they need JSON."""
        parts: dict[str, ObjectInputs] = {}
        for name, (_, members) in SETTING_PARTS[kind].items():
            part = value if name == ROOT else value.get(name, {})
            inputs = ObjectInputs.describe(members, part) if isinstance(part, dict) else None
            if inputs is None:
                return None
            parts[name] = inputs
        described = cls(kind, parts)
        return described if json_equal(described.compose(), value) else None

    @classmethod
    def from_data(cls, kind: str, data: FormData, prefix: str) -> SettingsInputs:
        return cls(
            kind,
            {
                name: ObjectInputs.from_data(members, data, f"{prefix}-{kind}-{name}")
                for name, (_, members) in SETTING_PARTS[kind].items()
            },
        )

    def compose(self) -> JSONObject:
        """Return the settings. Raise ValidationError, with the name of the setting in each message."""
        value: JSONObject = {}
        errors: list[ValidationError] = []
        for name, inputs in self.parts.items():
            try:
                part = inputs.compose()
            except ValidationError as error:
                errors += error.error_list
                continue
            value |= part if name == ROOT else {name: part} if part else {}
        if errors:
            raise ValidationError(errors)
        return value

    def input_error(self, prefix: str, path: str, message: str) -> InputError | None:
        """Return an error for the input of a setting such as `generateScore.prompt`, or None without such an input."""
        first, _, rest = path.partition(".")
        part, name = (first, rest) if first in self.parts else (ROOT, path)
        if part not in self.parts:
            return None
        heading = SETTING_PARTS[self.kind][part][0]
        labels = {member.name: member.label for member in self.parts[part].members}
        if part == path:  # the part as a whole, so that its first input is in error
            name, label = next(iter(labels)), heading
        elif name in labels:
            label = f"{heading} {labels[name]}".strip()
        else:
            return None
        return InputError(f"{label}: {message}", f"{prefix}-{self.kind}-{part}-{name}:0", message)

    def show_errors(self, errors: Iterable[ValidationError]) -> None:
        """Show these errors at their inputs."""
        of_inputs = [error for error in errors if isinstance(error, InputError)]
        for inputs in self.parts.values():
            inputs.errors = of_inputs

    def rows(self, prefix: str) -> Iterator[tuple[str, str, ObjectInputs]]:
        """Yield the prefix of the names, the heading and the inputs of each part, for the template."""
        for name, inputs in self.parts.items():
            yield f"{prefix}-{self.kind}-{name}", SETTING_PARTS[self.kind][name][0], inputs


class SettingsWidget(forms.Widget):
    """A widget that reads either the JSON text or the inputs of the submitted type. Templates render it."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> object:
        kind = data.get("type")
        if is_json_view(data, name):
            return data.get(name)
        return SettingsInputs.from_data(kind, data, name) if kind in SETTINGS else ""


class SettingsField(StrictJSONField):
    """The settings of a scorer, which are edited by inputs or as JSON."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "widget": SettingsWidget(), **options})

    def to_python(self, value: object) -> Any:
        return value.compose() if isinstance(value, SettingsInputs) else super().to_python(value)


@dataclass(frozen=True)
class SettingsView:
    """The settings in a form, for the template: the inputs of each type, or JSON if inputs cannot show the value."""

    groups: list[tuple[str, list[tuple[str, str, ObjectInputs]]]]
    json_text: str
    has_inputs: bool

    @classmethod
    def build(cls, bound: forms.BoundField, kind: str) -> SettingsView:
        """Return the settings of a bound or unbound form, with the errors of inputs at their inputs."""
        value = bound.data if bound.form.is_bound else bound.initial
        if isinstance(value, str) and value.strip():
            # What was entered as JSON is displayed as JSON, with its errors.
            return cls([], value, has_inputs=False)
        inputs = value if isinstance(value, SettingsInputs) else None
        if inputs is None and kind in SETTINGS:
            inputs = SettingsInputs.describe(kind, value or {})
        if value and inputs is None:
            return cls([], format_json(value), has_inputs=False)
        json_text = json_text_of(inputs)
        if inputs is not None:
            inputs.show_errors(bound.errors.as_data())
        return cls([*input_groups(bound.html_name, inputs)], json_text, has_inputs=True)


def input_groups(
    prefix: str, inputs: SettingsInputs | None
) -> Iterator[tuple[str, list[tuple[str, str, ObjectInputs]]]]:
    """Yield each type with its inputs, which are blank for other types than that of the settings."""
    for kind in SETTINGS:
        settings = inputs if inputs is not None and inputs.kind == kind else SettingsInputs.from_data(kind, {}, prefix)
        yield kind, [*settings.rows(prefix)]


def json_text_of(inputs: SettingsInputs | None) -> str:
    """Return the settings as JSON, as far as they are valid."""
    try:
        value = inputs.compose() if inputs is not None else {}
    except ValidationError:
        return ""
    return format_json(value) if value else ""
