"""The form of an agent with its fields as they are stored, for the admin; the shape of an agent does the checking."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from access_app.permissions import has_role
from access_app.role import Role
from agents_app.configuration import schema
from agents_app.configuration.sub_agents import reject_circular_reference
from agents_app.forms.fields import OptionalKeyField, RawTextField, StrictJSONField
from agents_app.models import Agent

LIST_FIELDS = ("tools", "workflows", "agents", "integration_tools", "input_processors", "output_processors")
OBJECT_FIELDS = ("model", "default_options", "scorers", "metadata")


class AgentForm(forms.ModelForm):
    """The configuration of an agent. It knows the revision it was opened with, and saves only what was changed."""

    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)
    change_message = RawTextField(required=False, max_length=500, label="Message", help_text="What changed, and why.")

    name = RawTextField(max_length=200)
    description = RawTextField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
    instructions = RawTextField(required=False, widget=forms.Textarea(attrs={"rows": 20}))
    memory = OptionalKeyField(required=False, max_length=256)

    class Meta:
        model = Agent
        fields = list(schema.FIELDS)
        field_classes: ClassVar = dict.fromkeys((*LIST_FIELDS, *OBJECT_FIELDS), StrictJSONField)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in LIST_FIELDS:
            self.fields[name].empty = list  # type: ignore[attr-defined]
        for name in (*LIST_FIELDS, *OBJECT_FIELDS[1:]):
            self.fields[name].required = False
        self.fields["revision"].initial = self.instance.revision

    def is_stale_for(self, row: Agent) -> bool:
        """Whether somebody saved since this form was opened."""
        opened = self.cleaned_data.get("revision")
        return opened is not None and opened != row.revision

    def changed_fields(self) -> dict[str, Any]:
        """The configuration that was changed in the form, by name."""
        return {
            name: self.cleaned_data[name]
            for name in schema.FIELDS
            if name in self.changed_data and name in self.cleaned_data
        }


class AgentAdminForm(AgentForm):
    """The agent's form, with who owns it and whether the change goes live."""

    user: Any = None  # who fills it in; set on the subclass that each request makes
    row: Agent

    id = RawTextField(max_length=128, help_text="Cannot be changed later.")
    owner_id = RawTextField(required=False, max_length=128, label="Owner", help_text="Blank is the shared space.")
    publish = forms.BooleanField(
        required=False,
        label="Make it live",
        help_text="With all that a draft ahead has gathered. Otherwise the change waits as a draft.",
    )

    class Meta(AgentForm.Meta):
        fields = ["id", "owner_id", *schema.FIELDS]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.fields.pop("id", None)
        # A draft ahead is released on purpose only.
        self.fields["publish"].initial = self.instance._state.adding or (
            self.may_publish and not self.instance.has_draft
        )

    def clean_owner_id(self) -> str:
        owner_id: str = self.cleaned_data["owner_id"]
        adding, before = self.instance._state.adding, self.initial.get("owner_id", "")
        if adding and not has_role(self.user, Role.EDITOR, owner_id):
            raise ValidationError("Creating an agent for this owner needs the role editor.")
        if not adding and owner_id != before:
            for owner in (before, owner_id):
                if not has_role(self.user, Role.PUBLISHER, owner):
                    raise ValidationError("Handing an agent over needs the role publisher for both owners.")
        return owner_id

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.instance._state.adding:
            self.refuse_circle(cleaned)
            return cleaned
        self.row = Agent.objects.get_locked(self.instance.pk)  # held until the admin's transaction ends
        if self.is_stale_for(self.row):
            raise ValidationError(
                "Somebody saved this agent since you opened it. Copy your text, reload the page and apply it there.",
                code="stale",
            )
        releases = cleaned.get("publish") and (self.changed_fields() or self.row.has_draft)
        if releases and not self.may_publish:
            self.add_error("publish", "This needs the role publisher. Untick it to save a draft.")
        if "agents" in self.changed_data or (cleaned.get("publish") and self.row.has_draft):
            self.refuse_circle(cleaned)
        return cleaned

    def refuse_circle(self, cleaned: dict[str, Any]) -> None:
        """Ask before the save does: the admin cannot say at a field what a save refused."""
        named = cleaned.get("agents")
        if isinstance(named, list) and all(isinstance(key, str) for key in named):  # the shape refuses the rest
            reject_circular_reference(self.user, cleaned.get("id", self.instance.pk), named)

    @property
    def may_publish(self) -> bool:
        return has_role(self.user, Role.PUBLISHER, self.initial.get("owner_id", ""))
