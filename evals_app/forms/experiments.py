"""The form that starts an experiment, and the form that reviews a result."""

from __future__ import annotations

from typing import Any

from django import forms

from agentcms.web.concurrent_edits import ConcurrentEditForm
from agentcms.web.text_direction import PersonTextField, isolate_text
from agentcms.wire.json_types import JSONObject
from agents_app.models.querysets import usable_owners
from agents_app.registry import Kind, registry
from evals_app.datasets.schema import MAX_KEY_LENGTH, MAX_KEYS, MAX_TEXT_LENGTH
from evals_app.experiments.memory import PER_ITEM
from evals_app.experiments.options import MAX_CONCURRENCY, MAX_REPEATS, MAX_SEED, ONLY_AGENTS_MESSAGE
from evals_app.experiments.results import ReviewColumns
from evals_app.forms.key_lists import KeysField
from evals_app.models import Dataset, Experiment, ExperimentResult, Scorer

SHARED_THREAD = "shared"
MEMORY_CHOICES = (
    ("", "As each item says, else none"),
    (PER_ITEM, "A new conversation for each item"),
    (SHARED_THREAD, "One conversation for all items, one after the other"),
)
MAX_AGENT_CHOICES = 500
MANY_AGENTS_HELP = f"The {MAX_AGENT_CHOICES} agents that changed last. The API runs all others. "


class StartForm(forms.Form):
    """The options of a new experiment over a dataset. `agents` are those that the user may see.

    The value of a target is its type and its key: `agent:clerk`, `workflow:triage-ticket`, `scorer:exact`.
    """

    target = forms.ChoiceField(label="What to run", help_text="A scorer scores the items themselves, as answers.")
    version = forms.CharField(
        # The ID of a version fits, too: the API of experiments accepts one.
        max_length=40,
        required=False,
        help_text="A number, live or draft. Workflows have no versions.",
    )
    scorers = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Without a choice, those of each item or of the dataset score the answers.",
    )
    repeats = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_REPEATS, help_text="How often each item runs."
    )
    seed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_SEED,
        help_text="With the same seed, many models answer the same. Blank: the model chooses.",
    )
    concurrency = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_CONCURRENCY, label="Items at once", help_text="1 to 20."
    )
    memory = forms.ChoiceField(required=False, choices=MEMORY_CHOICES, label="Conversations")
    max_cost = forms.FloatField(
        required=False, min_value=0, label="Stop above ($)", help_text="Blank: the cost has no limit."
    )
    name = PersonTextField(required=False, max_length=200)

    def __init__(self, *args: Any, dataset: Dataset, agents: list[tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["target"].choices = target_choices(agents, dataset.owner_id)  # type: ignore[attr-defined]
        if len(agents) >= MAX_AGENT_CHOICES:
            self.fields["target"].help_text = MANY_AGENTS_HELP + str(self.fields["target"].help_text)
        self.fields["scorers"].choices = scorer_choices(dataset.owner_id)  # type: ignore[attr-defined]
        for name in ("repeats", "seed", "concurrency", "max_cost"):
            self.fields[name].widget.attrs["inputmode"] = "decimal"

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        kind, _, _ = values.get("target", "").partition(":")
        for name in ("memory", "seed") if kind and kind != Experiment.Target.AGENT else ():
            if values.get(name) not in (None, ""):
                self.add_error(name, ONLY_AGENTS_MESSAGE)
        return values

    @property
    def body(self) -> JSONObject:
        """The body of a request that creates the same experiment. The form must be valid."""
        values = self.cleaned_data
        kind, _, key = values["target"].partition(":")
        body: JSONObject = {
            "targetType": kind,
            "targetId": key,
            "agentVersion": values["version"] or "live",
            "name": values["name"],
            "repeats": values["repeats"],
            "seed": values["seed"],
            "maxConcurrency": values["concurrency"],
        }
        if values["scorers"]:
            body["scorerIds"] = values["scorers"]
        if values["memory"]:
            body["memory"] = {"thread": values["memory"]}
        if values["max_cost"] is not None:
            body["budget"] = {"maxCost": values["max_cost"]}
        return body


def target_choices(agents: list[tuple[str, str]], owner_id: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what an experiment of an owner can run, in groups."""
    workflows = [(entry.key, entry.title) for entry in registry.selectable(Kind.WORKFLOW)]
    groups = {
        ("Agents", Experiment.Target.AGENT): agents,
        ("Workflows", Experiment.Target.WORKFLOW): sorted(workflows, key=lambda choice: choice[1].casefold()),
        ("Scorers", Experiment.Target.SCORER): [*scorer_choices(owner_id), *unpublished_scorers(owner_id)],
    }
    return [
        (label, [(f"{kind}:{key}", f"{isolate_text(name)} ({key})") for key, name in choices])
        for (label, kind), choices in groups.items()
        if choices
    ]


def scorer_choices(owner_id: str) -> list[tuple[str, str]]:
    """Return the scorers that an owner may use, by title."""
    entries = registry.selectable(Kind.SCORER, usable_owners(owner_id))
    return sorted(((entry.key, entry.title) for entry in entries), key=lambda choice: choice[1].casefold())


def unpublished_scorers(owner_id: str) -> list[tuple[str, str]]:
    """Return the scorers of an owner of which no version is live. Experiments can test their drafts."""
    rows = Scorer.objects.usable_by(owner_id).filter(live=None).select_related("head")
    return sorted(((row.pk, row.name) for row in rows), key=lambda choice: choice[1].casefold())


REVIEW_CHANGED_MESSAGE = (
    "Nothing was saved: somebody else has reviewed this answer since you opened the page. Their review is above. Save "
    "again to replace it."
)


class ReviewForm(ConcurrentEditForm):
    """The review of a result by people."""

    review = forms.ChoiceField(
        required=False, choices=[("", "Not reviewed"), *ExperimentResult.Review.choices], label="State"
    )
    tags = KeysField(required=False, help_text="Separated by commas. A tag with a comma is in quotes.")
    comment = PersonTextField(required=False, max_length=MAX_TEXT_LENGTH, widget=forms.Textarea(attrs={"rows": 2}))

    def clean_tags(self) -> list[str]:
        tags: list[str] = self.cleaned_data["tags"]
        if len(tags) > MAX_KEYS or any(len(tag) > MAX_KEY_LENGTH for tag in tags):
            raise forms.ValidationError(f"Enter at most {MAX_KEYS} tags of at most {MAX_KEY_LENGTH} characters.")
        return [*dict.fromkeys(tags)]

    @property
    def columns(self) -> ReviewColumns:
        """The valid values."""
        values = self.cleaned_data
        return {"review": values["review"], "tags": values["tags"], "comment": values["comment"]}
