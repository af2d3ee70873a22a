"""Forms of the pages of a history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet
from django.utils.http import urlencode

from agentcms.web.concurrent_edits import ConcurrentEditForm
from agentcms.web.list_state import Chip
from agents_app.configuration.field_labels import FIELD_LABELS
from agents_app.forms.actions import SnapshotForm
from agents_app.forms.fields import RawTextField
from agents_app.forms.form_data import FormData
from agents_app.forms.gates import BypassReasonField
from agents_app.models import Agent
from versions_app.history.version_summaries import filter_by_changed_field
from versions_app.models import AgentVersion
from versions_app.models.version import get_head_version, get_live_version


class PointersForm(forms.Form):
    """The numbers of the live and head version at the time a dialog was opened."""

    live = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=0)
    head = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=0)
    checked_pointers: ClassVar[tuple[str, ...]] = ("live",)

    def __init__(self, data: FormData | None, agent: Agent, **options: Any) -> None:
        live, head = get_live_version(agent), get_head_version(agent)
        self.current_numbers = {"live": live.version_number, "head": head.version_number}
        super().__init__(data, initial={**self.current_numbers, **options.pop("initial", {})}, **options)

    @property
    def is_stale(self) -> bool:
        """Return True if a checked pointer changed since the dialog was opened, or is missing in the form."""
        # The text as it was sent: whether a form is stale is asked before whether it is valid.
        return any(
            self.data.get(self.add_prefix(name)) != str(self.current_numbers[name]) for name in self.checked_pointers
        )


class ActivateForm(PointersForm):
    """The reason for publishing a version."""

    message = RawTextField(
        required=False,
        max_length=500,
        label="Reason",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Shown in the live history.",
    )
    bypass_reason = BypassReasonField()


class RestoreForm(ActivateForm):
    """The message of a restored version. Restoring may replace both live and head."""

    checked_pointers: ClassVar[tuple[str, ...]] = ("live", "head")
    message = RawTextField(
        required=False,
        max_length=500,
        label="Message",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Shown with the new version.",
    )


class DiscardForm(PointersForm):
    """The confirmation of discarding a draft."""

    checked_pointers: ClassVar[tuple[str, ...]] = ("live", "head")


def restore_texts(form: forms.BaseForm) -> None:
    """Keep the stored texts that were sent as their inputs show them: an input changes line ends."""
    for name, field in form.fields.items():
        if isinstance(field, RawTextField) and name in form.cleaned_data:
            stored = form.get_initial_for_field(field, name) or ""
            form.cleaned_data[name] = field.restore(form.cleaned_data[name], stored)


class DescribeForm(ConcurrentEditForm, SnapshotForm):
    """The editable fields of a version, which replace only what their user has seen."""

    def __init__(self, data: FormData | None, version: AgentVersion) -> None:
        self.stored = {name: getattr(version, name) for name in SnapshotForm.base_fields}
        super().__init__(data, initial={**self.stored})
        self.fields["name"].required = False  # the name of a version can be removed
        self.mark_values(self.stored)

    def clean(self) -> dict[str, Any]:
        restore_texts(self)
        # A form that was sent twice has nothing to replace.
        if self.is_outdated() and self.description != self.stored:
            self.ask_to_replace()
        return self.cleaned_data

    @property
    def description(self) -> dict[str, Any]:
        """The name, message and pin that were sent, without invalid ones."""
        return {name: self.cleaned_data[name] for name in self.stored if name in self.cleaned_data}


INPUT_ATTRS = {"class": "input"}
DATE_INPUT = forms.DateInput(attrs={"type": "date", **INPUT_ATTRS}, format="%Y-%m-%d")


class VersionFilterForm(forms.Form):
    """The filters of a history, sent as query parameters."""

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

    def __init__(self, data: FormData | None, authors: Iterable[str]) -> None:
        super().__init__(data)
        self.fields["author"].choices = [  # type: ignore[attr-defined]
            ("", "Any author"),
            *((author, author) for author in authors),
        ]

    def filter_versions(self, versions: QuerySet[AgentVersion]) -> QuerySet[AgentVersion]:
        """Return the versions that match the valid fields of the form."""
        self.is_valid()
        values = self.cleaned_data
        if values.get("named"):
            versions = versions.exclude(name="")
        if values.get("author"):
            versions = versions.filter(author_name=values["author"])
        if values.get("field"):
            versions = filter_by_changed_field(versions, values["field"])
        if values.get("since"):
            versions = versions.filter(created_at__date__gte=values["since"])
        if values.get("until"):
            versions = versions.filter(created_at__date__lte=values["until"])
        return versions

    def active_filters(self) -> list[Chip]:
        """Return the active filters, each with the query string without it."""
        self.is_valid()
        chips = []
        for name, value in self.cleaned_data.items():
            if value:
                rest = {key: text for key, text in self.data.items() if key not in (name, "page") and text}
                text = "" if value is True else FIELD_LABELS.get(value, value) if name == "field" else str(value)
                chips.append(Chip(str(self.fields[name].label), text, f"?{urlencode(rest)}"))
        return chips
