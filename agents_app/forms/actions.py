"""What the acts on an agent ask before they are done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents_app.configuration import schema
from agents_app.forms.fields import OwnerField, RawTextField
from agents_app.models import Agent


class DeleteForm(forms.Form):
    """The agent's name, typed: what is deleted is gone with its history."""

    typed = RawTextField(label="Type its name to delete it", widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, name: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = name

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if " ".join(typed.split()) != " ".join(self.name.split()):  # a name may hold what no keyboard types
            raise ValidationError(f"This is not the name. Type: {self.name}")
        return typed


class DuplicateForm(forms.Form):
    """The id, the name and the owner of a copy."""

    id = RawTextField(max_length=128, label="Identifier", help_text="Stands in addresses and cannot be changed later.")
    name = RawTextField(max_length=200, label="Name")
    owner_id = OwnerField()

    def __init__(self, data: Any, *, agent: Agent, version: Any, owners: Sequence[str]) -> None:
        """`owners` are those that the person may create agents for; the same owner is suggested where it is one."""
        super().__init__(data, initial=suggested_values(agent, version, owners))
        self.owners = owners
        self.fields["owner_id"].offer(owners)  # type: ignore[attr-defined]

    def clean_id(self) -> str:
        agent_id: str = self.cleaned_data["id"]
        try:
            schema.validate_fields(schema.as_partial(schema.AgentCreate), {"id": agent_id})
        except schema.ConfigError as error:
            raise ValidationError([issue.message for issue in error.issues]) from error
        if Agent.objects.filter(pk=agent_id).exists():
            raise ValidationError(f"There is an agent with the id {agent_id} already.", code="taken")
        return agent_id


class SnapshotForm(forms.Form):
    """What is said of a version that is saved by hand."""

    name = RawTextField(required=False, max_length=100, label="Name")
    change_message = RawTextField(
        required=False, max_length=500, label="Message", widget=forms.Textarea(attrs={"rows": 3})
    )
    pinned = forms.BooleanField(required=False, label="Pin it", help_text="A pinned version is never pruned.")


class DiscardForm(forms.Form):
    """The draft that the question was about."""

    head = forms.UUIDField(widget=forms.HiddenInput)


def suggested_values(agent: Agent, version: Any, owners: Sequence[str]) -> dict[str, str]:
    name = f"{version.snapshot['name']} (copy)"
    owner_id = agent.owner_id if agent.owner_id in owners else next(iter(owners), "")
    return {"id": f"{agent.pk[:110]}-copy", "name": name[:200], "owner_id": owner_id}


class ChangeOwnerForm(forms.Form):
    """The new owner: one that the person publishes for, or for superusers any."""

    owner_id = OwnerField(
        label="New owner", error_messages={"invalid_choice": "You do not publish for this owner. Choose another one."}
    )

    def __init__(self, *args: Any, owners: Sequence[str], free: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if free:
            self.fields["owner_id"] = RawTextField(
                required=False,
                max_length=128,
                label="New owner",
                help_text="Blank is the shared space.",
                widget=forms.TextInput(attrs={"list": "owners", "autocomplete": "off"}),
            )
        else:
            self.fields["owner_id"].offer(owners)  # type: ignore[attr-defined]

    def clean_owner_id(self) -> str:
        owner_id: str = self.cleaned_data["owner_id"]
        try:
            schema.validate_fields(schema.as_partial(schema.AgentCreate), {"ownerId": owner_id})
        except schema.ConfigError as error:
            raise ValidationError([issue.message for issue in error.issues]) from error
        return owner_id
