"""The admin forms of agents. The schema of agents validates them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from access_app.admin_base.team_fields import offer_owners
from access_app.permissions import has_role
from access_app.role import Role
from agentcms.wire.canonical import canonical
from agentcms.wire.json_types import JSONObject
from agents_app.configuration import schema
from agents_app.configuration.field_labels import FIELD_LABELS
from agents_app.configuration.sub_agents import CircularReference, describe_dependents, reject_circular_reference
from agents_app.forms.field_values import MODEL_SETTINGS, to_form_values
from agents_app.forms.fields import ID_HELP, JSONNumberField, RawTextField, id_taken_message
from agents_app.models import Agent
from agents_app.registry import Entry, Kind, registry
from agents_app.views.access import selectable_owners

# The editor has fields for the rest of a configuration.
FORM_FIELDS = ("name", "description", "instructions", "model", "memory")
READ_ONLY_FIELDS = tuple(name for name in schema.FIELDS if name not in FORM_FIELDS)
MODEL_INPUTS = ("provider", "model_name", *MODEL_SETTINGS)
DELETED_MESSAGE = "This agent was deleted since you opened it. Copy your text, and restore the agent from the trash."
STORED_OPTIONS = ":options"  # the choice of a memory with options of its own, which stays as it is


class AgentForm(forms.ModelForm):
    """The configuration of an agent. It detects concurrent changes and saves only the fields that changed."""

    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)
    agent_key = forms.CharField(widget=forms.HiddenInput, required=False)
    change_message = RawTextField(required=False, max_length=500, label="Message", help_text="What changed, and why.")

    name = RawTextField(max_length=200)
    description = RawTextField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
    instructions = RawTextField(required=False, widget=forms.Textarea(attrs={"rows": 20, "class": "code-field"}))
    provider = forms.ChoiceField()
    model_name = RawTextField(label="Model", max_length=256, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    temperature = JSONNumberField(required=False)
    top_p = JSONNumberField(required=False, label="Top P")
    max_tokens = JSONNumberField(required=False, label="Max tokens")
    memory = forms.ChoiceField(required=False)

    class Meta:
        model = Agent
        fields: ClassVar = ["name", "description", "instructions", "memory"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = to_form_values({name: getattr(self.instance, name) for name in schema.FIELDS})
        self.initial.update({name: stored[name] for name in MODEL_INPUTS if name in stored})
        self.rest_of_model = stored["model_rest"]
        self.set_choices(stored["provider"])
        has_options = isinstance(self.instance.memory, dict)
        self.initial["memory"] = STORED_OPTIONS if has_options else self.instance.memory or ""
        self.fields["revision"].initial = self.instance.revision
        self.fields["agent_key"].initial = self.instance.row_key

    def set_choices(self, provider: str) -> None:
        """Offer what is registered, and what is stored if it is not."""
        memory = self.instance.memory
        own = [(STORED_OPTIONS, "Options of this agent")] if isinstance(memory, dict) else []
        memories = registered_choices(registry.entries(Kind.MEMORY), "" if own else memory or "")
        providers = registered_choices(registry.selectable(Kind.MODEL_PROVIDER), provider)
        self.fields["memory"].choices = [("", "No memory"), *memories, *own]  # type: ignore[attr-defined]
        self.fields["provider"].choices = providers  # type: ignore[attr-defined]

    def clean_memory(self) -> Any:
        choice = self.cleaned_data["memory"]
        return self.instance.memory if choice == STORED_OPTIONS else choice or None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not {*MODEL_INPUTS} - cleaned.keys():
            model = {"provider": cleaned["provider"], "name": cleaned["model_name"]}
            model |= {wire: cleaned[name] for name, wire in MODEL_SETTINGS.items() if cleaned[name] is not None}
            cleaned["model"] = {**self.rest_of_model, **model}
            # Not by ==: 1 is True in Python, and in JSON it is not.
            if canonical(cleaned["model"]) != canonical(self.instance.model):
                # No input is named `model`, so Django does not set it. The agent is validated and saved with it.
                self.instance.model = cleaned["model"]
            else:
                del cleaned["model"]
        return cleaned

    def _update_errors(self, errors: ValidationError) -> None:
        """Add the errors of the agent's validation. Those of fields without an input are above the form."""
        invalid = {"model" if name in MODEL_INPUTS else name for name in self.errors}
        by_field: dict[str, list[ValidationError]] = {}
        for name, messages in errors.update_error_dict({}).items():
            if name in invalid:  # the agent did not get what was entered, and its error would be about nothing
                continue
            field = "provider" if name == "model" else name if name in self.fields else NON_FIELD_ERRORS
            label = "" if name in (field, "model") else f"{FIELD_LABELS.get(schema.WIRE_NAMES.get(name, ''), name)}: "
            labelled = [ValidationError(f"{label}{text}") for error in messages for text in error]
            by_field.setdefault(field, []).extend(labelled)
        super()._update_errors(ValidationError(by_field))  # type: ignore[misc]

    def is_stale_for(self, row: Agent) -> bool:
        """Return whether the agent was saved since this form was opened, or another one has its ID."""
        opened_revision, opened_key = self.cleaned_data.get("revision"), self.cleaned_data.get("agent_key")
        return opened_revision not in (None, row.revision) or opened_key not in ("", row.row_key)

    def changed_fields(self) -> JSONObject:
        """Return the changed configuration fields by name."""
        return {
            name: self.cleaned_data[name]
            for name in FORM_FIELDS
            if name in self.cleaned_data and (name == "model" or name in self.changed_data)
        }


def registered_choices(entries: Iterable[Entry], stored: str) -> list[tuple[str, str]]:
    """Return the registered entries, and the stored key if it is not among them."""
    known = {entry.key: entry.title for entry in entries}
    return [*known.items(), *([(stored, f"{stored} (not registered)")] if stored and stored not in known else [])]


class AgentAdminForm(AgentForm):
    """The agent's form with its ID and owner, and whether to publish the change."""

    user: User  # set on the subclass of each request
    row: Agent

    id = RawTextField(max_length=128, label="ID", help_text=ID_HELP)
    owner_id = RawTextField(required=False, max_length=128, label="Team")
    owner_change_confirmed = forms.BooleanField(
        required=False,
        label="Confirm the team",
        help_text="Select this to change the team although other agents use it.",
    )
    publish = forms.BooleanField(
        required=False,
        label="Publish",
        help_text="Publishes the draft with this change. Otherwise the change is saved as a draft.",
    )

    class Meta(AgentForm.Meta):
        fields: ClassVar = ["id", "owner_id", *AgentForm.Meta.fields]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        adding = self.instance._state.adding
        owners = selectable_owners(self.user, Role.EDITOR if adding else Role.PUBLISHER)
        if not adding:
            # Also its own, for which the user may be an editor only: the form must not change the team by itself.
            owners = sorted({*owners, self.instance.owner_id})
        offer_owners(self.fields["owner_id"], owners)
        self.fields.pop("owner_change_confirmed" if adding else "id", None)
        # Unticked while there is a draft, so that nobody publishes it by accident.
        self.fields["publish"].initial = adding or (self.may_publish and not self.instance.has_draft)

    def clean_id(self) -> str:
        agent_id: str = self.cleaned_data["id"]
        if Agent.objects.filter(pk=agent_id).exists():
            raise ValidationError(id_taken_message(agent_id), code="unique")
        return agent_id

    def clean_owner_id(self) -> str:
        owner_id: str = self.cleaned_data["owner_id"]
        adding, before = self.instance._state.adding, self.initial.get("owner_id", "")
        if adding and not has_role(self.user, Role.EDITOR, owner_id):
            raise ValidationError("Creating an agent in this team needs the Editor role.")
        if not adding and owner_id != before:
            for owner in (before, owner_id):
                if not has_role(self.user, Role.PUBLISHER, owner):
                    raise ValidationError("Moving an agent to another team needs the Publisher role in both teams.")
        return owner_id

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.instance._state.adding:
            return cleaned
        try:
            self.row = Agent.objects.get_locked(self.instance.pk)  # locked until the admin's transaction ends
        except Agent.DoesNotExist:
            raise ValidationError(DELETED_MESSAGE, code="deleted") from None
        if self.is_stale_for(self.row):
            raise ValidationError(
                "This agent was saved since you opened it. Copy your text, open it again and reapply it.",
                code="stale",
            )
        self.confirm_owner_change(cleaned)
        publishes = cleaned.get("publish") and (self.changed_fields() or self.row.has_draft)
        if publishes and not self.may_publish:
            self.add_error("publish", "Publishing needs the Publisher role. Clear the box to save a draft.")
        if cleaned.get("publish") and self.row.has_draft:
            self.reject_circular_draft()
        return cleaned

    def reject_circular_draft(self) -> None:
        """Reject a draft with a circular reference here: the admin cannot show an error of the save."""
        try:
            reject_circular_reference(self.user, self.row.pk, self.row.agents)
        except CircularReference as error:
            raise ValidationError(error.summary, code="circular") from None

    def confirm_owner_change(self, cleaned: dict[str, Any]) -> None:
        """Reject a change of the owner that takes the agent from others, unless it is confirmed."""
        owner_id = cleaned.get("owner_id", self.row.owner_id)
        if owner_id == self.row.owner_id or cleaned.get("owner_change_confirmed"):
            return
        if users := describe_dependents(self.user, self.row, owner_id):
            self.add_error("owner_change_confirmed", f"{users} would lose this agent. Select this to change the team.")

    @property
    def may_publish(self) -> bool:
        return has_role(self.user, Role.PUBLISHER, self.initial.get("owner_id", ""))
