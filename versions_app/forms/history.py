"""What the pages of a history ask."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet
from django.utils.http import urlencode

from agents_app.configuration.display import FIELD_LABELS
from agents_app.forms.actions import SnapshotForm
from agents_app.forms.fields import RawTextField
from agents_app.models import Agent
from versions_app.history.timeline import filter_by_changed_field
from versions_app.models import AgentVersion


class PointersForm(forms.Form):
    """What was live and head when a dialog was opened, by number."""

    live = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=0)
    head = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=0)
    watched: ClassVar[tuple[str, ...]] = ("live",)

    def __init__(self, data: Any, agent: Agent, **options: Any) -> None:
        live: Any = agent.active_version
        head: Any = agent.head_version
        self.now = {"live": live.version_number, "head": head.version_number}
        super().__init__(data, initial={**self.now, **options.pop("initial", {})}, **options)

    @property
    def is_stale(self) -> bool:
        """Whether what it was opened on has moved since; a form that does not say is not trusted either."""
        return any(self.data.get(self.add_prefix(name)) != str(self.now[name]) for name in self.watched)


class ActivateForm(PointersForm):
    """Making a version live: why."""

    message = RawTextField(
        required=False,
        max_length=500,
        label="Why",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Kept in the log of who moved live.",
    )


class RestoreForm(ActivateForm):
    """Restoring replaces both what is live and what is edited."""

    watched: ClassVar[tuple[str, ...]] = ("live", "head")
    message = RawTextField(
        required=False,
        max_length=500,
        label="Message",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Stands beside the new version.",
    )


class DiscardForm(PointersForm):
    watched: ClassVar[tuple[str, ...]] = ("live", "head")


class DescribeForm(SnapshotForm):
    """All that may change of a version."""


INPUT_ATTRS = {"class": "input"}
DATE_INPUT = forms.DateInput(attrs={"type": "date", **INPUT_ATTRS}, format="%Y-%m-%d")


class VersionFilterForm(forms.Form):
    """Which versions of a history are shown; all of it stands in the address."""

    named = forms.BooleanField(required=False, label="Named only")
    author = forms.ChoiceField(required=False, label="Author", widget=forms.Select(INPUT_ATTRS))
    field = forms.ChoiceField(
        required=False,
        label="Changed",
        choices=[("", "Any field"), *FIELD_LABELS.items()],
        widget=forms.Select(INPUT_ATTRS),
    )
    since = forms.DateField(required=False, label="From", widget=DATE_INPUT)
    until = forms.DateField(required=False, label="To", widget=DATE_INPUT)

    def __init__(self, data: Any, authors: Any) -> None:
        super().__init__(data)
        self.fields["author"].choices = [  # type: ignore[attr-defined]
            ("", "Anybody"),
            *((author, author or "Nobody") for author in authors),
        ]

    def narrow(self, versions: QuerySet[AgentVersion]) -> QuerySet[AgentVersion]:
        """The versions that match what of the form is valid."""
        self.is_valid()
        asked = self.cleaned_data
        if asked.get("named"):
            versions = versions.exclude(name="")
        if asked.get("author"):
            versions = versions.filter(author_name=asked["author"])
        if asked.get("field"):
            versions = filter_by_changed_field(versions, asked["field"])
        if asked.get("since"):
            versions = versions.filter(created_at__date__gte=asked["since"])
        if asked.get("until"):
            versions = versions.filter(created_at__date__lte=asked["until"])
        return versions

    def asked(self) -> list[dict[str, str]]:
        """Each filter in force: its label, its value in words, and the address without it."""
        self.is_valid()
        chips = []
        for name, value in self.cleaned_data.items():
            if value:
                rest = {other: each for other, each in self.data.items() if other not in (name, "page") and each}
                words = "" if value is True else FIELD_LABELS.get(value, value) if name == "field" else str(value)
                chips.append({"label": str(self.fields[name].label), "value": words, "without": urlencode(rest)})
        return chips
