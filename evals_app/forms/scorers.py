"""The form of a stored scorer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django import forms
from django.http import QueryDict

from agentcms.web.concurrent_edits import ConcurrentEditForm
from agentcms.web.text_direction import PersonTextField
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import Issue
from agents_app.forms.fields import OwnerField
from agents_app.forms.objects.field import StructuredValue
from agents_app.forms.variables_field import VariablesField
from agents_app.registry import Entry, Kind, registry
from evals_app.forms.scorer_settings import SettingsField, SettingsInputs, SettingsView
from evals_app.models import Scorer
from evals_app.scorers.kinds.judges import JUDGE
from evals_app.scorers.presets import PRESETS

TYPE_CHOICES = [
    (JUDGE, "Judge with your own instructions"),
    ("Ready-made judges", [(key, preset.title) for key, preset in PRESETS.items()]),
    ("check", "Check: a fixed rule"),
    ("trajectory", "Trajectory: the calls of tools"),
    ("pipeline", "Pipeline: up to four steps"),
]
# The fields of the form for the names of the configuration, so that an error is displayed at its field.
FIELD_BY_WIRE_NAME = {
    "model": "model_name",
    "model.provider": "model_provider",
    "model.name": "model_name",
    "scoreRange": "highest",
    "passThreshold": "pass_threshold",
    "outputSchema": "output_schema",
    "presetConfig": "settings",
    "id": "key",
    "ownerId": "owner_id",
}


class ScorerForm(ConcurrentEditForm):
    """The configuration of a scorer. A new one has an ID and a team too.

    Some fields are needed by some types only, so that their labels do not say that they are optional.
    """

    optional_names = ("key", "description", "lowest", "highest", "pass_threshold", "output_schema", "change_message")

    name = PersonTextField(max_length=200)
    key = forms.SlugField(
        required=False, max_length=64, label="ID", help_text="Blank: made from the name. It cannot be changed."
    )
    owner_id = OwnerField(
        error_messages={"invalid_choice": "You cannot create scorers for this team. Choose one of your teams."}
    )
    description = PersonTextField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
    type = forms.ChoiceField(choices=TYPE_CHOICES)
    model_provider = forms.CharField(
        required=False,
        max_length=100,
        help_text="For judges and steps with a prompt.",
        widget=forms.TextInput(attrs={"list": "providers", "autocomplete": "off"}),
    )
    model_name = forms.CharField(
        required=False,
        max_length=200,
        label="Model",
        widget=forms.TextInput(attrs={"list": "model-names", "autocomplete": "off"}),
    )
    instructions = PersonTextField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="What a judge looks at, and what each score means. Blank: those of the ready-made judge.",
    )
    lowest = forms.FloatField(required=False, label="Lowest score", help_text="0 by default.")
    highest = forms.FloatField(required=False, label="Highest score", help_text="1 by default.")
    pass_threshold = forms.FloatField(required=False, help_text="Adds pass or fail to each score.")
    output_schema = VariablesField(
        label="Answer of the judge",
        help_text="For a judge that answers with an object: its properties. One of them is score, a number.",
    )
    settings = SettingsField(label="Settings")
    change_message = PersonTextField(required=False, max_length=500, label="Describe this change")

    def __init__(
        self, data: QueryDict | None = None, *, row: Scorer | None = None, owners: list[str] | None = None
    ) -> None:
        super().__init__(data, initial=scorer_initial_values(row))
        for name in ("lowest", "highest", "pass_threshold"):
            self.fields[name].widget.attrs["inputmode"] = "decimal"
        if row is not None:
            del self.fields["key"], self.fields["owner_id"]
            self.mark_values({"head": str(row.head_id)})
        else:
            self.fields["owner_id"].set_owners(owners or [])  # type: ignore[attr-defined]

    def clean(self) -> None:
        if self.is_outdated():
            self.ask_to_replace()

    @property
    def settings_view(self) -> SettingsView:
        """The inputs of the settings."""
        return SettingsView.build(self["settings"], str(self["type"].value() or ""))

    @property
    def output_view(self) -> StructuredValue:
        """The properties of the answer of a judge."""
        return StructuredValue.build(self["output_schema"])

    @property
    def providers(self) -> Sequence[Entry]:
        """The registered model providers, which the form suggests."""
        return registry.selectable(Kind.MODEL_PROVIDER)

    @property
    def snapshot(self) -> JSONObject:
        """The configuration under the names of the API, without what is blank. The form must be valid."""
        values = self.cleaned_data
        limits = {"min": values["lowest"], "max": values["highest"]}
        model = {"provider": values["model_provider"], "name": values["model_name"]}
        body = {
            "name": values["name"],
            "description": values["description"],
            "type": values["type"],
            "model": {name: value for name, value in model.items() if value},
            "instructions": values["instructions"],
            "scoreRange": {name: value for name, value in limits.items() if value is not None},
            "passThreshold": values["pass_threshold"],
            "outputSchema": values["output_schema"],
            "presetConfig": values["settings"],
        }
        # Blank inputs are those of other types too. A setting that is not there has the default of its type.
        return {name: value for name, value in body.items() if value not in (None, "", {})}

    def add_issues(self, issues: Iterable[Issue]) -> None:
        """Show the faults of a configuration at their fields."""
        for issue in issues:
            wire, _, path = issue.field.partition(".")
            is_own_field = issue.field in FIELD_BY_WIRE_NAME
            field = FIELD_BY_WIRE_NAME.get(issue.field if is_own_field else wire, wire)
            inputs = self["settings"].data if field == "settings" else None
            if isinstance(inputs, SettingsInputs) and (error := inputs.input_error("settings", path, issue.message)):
                self.add_error(field, error)
                continue
            text = f"{issue.field}: {issue.message}" if path and not is_own_field else issue.message
            self.add_error(field if field in self.fields else None, text)


def scorer_initial_values(row: Scorer | None) -> JSONObject:
    snapshot = row.head.snapshot if row is not None and row.head is not None else {}
    model, limits = snapshot.get("model") or {}, snapshot.get("scoreRange") or {}
    names = {"pass_threshold": "passThreshold", "output_schema": "outputSchema", "settings": "presetConfig"}
    values = {name: snapshot.get(wire) for name, wire in names.items()}
    same = ("name", "description", "type", "instructions")
    return {
        **{name: snapshot.get(name) for name in same},
        **{name: value for name, value in values.items() if value is not None},
        "model_provider": model.get("provider"),
        "model_name": model.get("name"),
        "lowest": limits.get("min"),
        "highest": limits.get("max"),
    }
