"""The form of a release gate."""

from __future__ import annotations

from django import forms
from django.db.models import QuerySet

from agentcms.web.concurrent_edits import ConcurrentEditForm
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.forms.form_data import FormData
from agents_app.models import Agent
from evals_app.forms.experiments import scorer_choices
from evals_app.gates.checking import describe_need
from evals_app.gates.schema import apply_gate
from evals_app.models import Dataset, ReleaseGate

# The names of the fields in the API, whose validation this form uses.
GATE_WIRE_NAMES = {
    "dataset": "datasetId",
    "dataset_version": "datasetVersion",
    "scorer": "scorer",
    "statistic": "statistic",
    "minimum": "min",
    "maximum": "max",
    "max_failed": "maxFailed",
    "max_age_days": "maxAgeDays",
    "mode": "mode",
}
BOUNDS = {"minimum", "maximum"}
CHANGED_MESSAGE = (
    "Nothing was saved: somebody else has changed this gate since you opened the page. It now asks for {need}. Save "
    "again to replace it."
)


class GateForm(ConcurrentEditForm):
    """A gate of an agent, or of all agents of its team."""

    dataset = forms.ChoiceField()
    dataset_version = forms.IntegerField(required=False, min_value=0, help_text="Blank: always the current one.")
    scorer = forms.ChoiceField()
    statistic = forms.ChoiceField(choices=ReleaseGate.Statistic.choices)
    minimum = forms.FloatField(required=False, label="At least")
    maximum = forms.FloatField(required=False, label="At most")
    max_failed = forms.IntegerField(required=False, min_value=0, label="Failed items allowed")
    max_age_days = forms.IntegerField(
        required=False, min_value=1, label="Oldest experiment in days", help_text="Blank: no limit."
    )
    mode = forms.ChoiceField(
        choices=[
            (ReleaseGate.Mode.ENFORCE, "Refuse to publish"),
            (ReleaseGate.Mode.WARN, "Only warn before publishing"),
        ],
        label="If a version misses it",
    )
    for_team = forms.BooleanField(required=False, label="For all agents of the team")

    def __init__(self, data: FormData | None, gate: ReleaseGate, agent: Agent, datasets: QuerySet[Dataset]) -> None:
        names = [name for name in GATE_WIRE_NAMES if name != "dataset"]
        initial = {name: getattr(gate, name) for name in names} | {"dataset": gate.dataset_id}
        is_new = gate._state.adding  # not by the primary key, which a new gate has, too
        initial["for_team"] = not is_new and gate.agent_id is None
        super().__init__(data, initial=initial)
        if not is_new:
            self.mark_values(initial)
        self.gate, self.agent, self.datasets = gate, agent, datasets
        scorers = scorer_choices(agent.owner_id)
        if gate.scorer and gate.scorer not in dict(scorers):
            # It was deleted. The other fields of the gate can be changed even so.
            scorers.append((gate.scorer, gate.scorer))
        self.fields["dataset"].choices = [*datasets.values_list("pk", "name")]  # type: ignore[attr-defined]
        self.fields["scorer"].choices = scorers  # type: ignore[attr-defined]
        for name in ("dataset_version", "minimum", "maximum", "max_failed", "max_age_days"):
            self.fields[name].widget.attrs["inputmode"] = "decimal"

    @property
    def body(self) -> JSONObject:
        """The body of a request that makes the same gate, without the fields that have errors."""
        valid = self.cleaned_data
        fields = {wire: valid[name] for name, wire in GATE_WIRE_NAMES.items() if name in valid}
        return {**fields, "allAgents": self.cleaned_data["for_team"]}

    def clean(self) -> None:
        if not self.errors and self.is_outdated():
            self.ask_to_replace(CHANGED_MESSAGE.format(need=describe_need(self.gate, self.gate.owner_id)))
            return
        try:
            # `is_new` also for a change: the form sends all fields.
            apply_gate(self.gate, self.body, self.agent, is_new=True, datasets=self.datasets)
        except ConfigError as error:
            self.add_issues(error.issues)

    def add_issues(self, issues: list[Issue]) -> None:
        """Add the issues of fields that have no error yet: those were left out."""
        names = {wire: name for name, wire in GATE_WIRE_NAMES.items()}
        left_out = {*self.errors}
        if left_out & BOUNDS:
            left_out |= BOUNDS  # the other one may be blank
        for issue in issues:
            if (name := names.get(issue.field)) not in left_out:
                self.add_error(name, issue.message)

    def save(self) -> ReleaseGate:
        """Store the gate. The form must be valid."""
        self.gate.save()
        return self.gate
