"""The forms in the dialogs of actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents_app.configuration import schema
from agents_app.forms.fields import ID_HELP, SHARED_HELP, OwnerField, RawTextField, id_taken_message
from agents_app.models import Agent
from agents_app.models.version_protocol import Version


class DeleteForm(forms.Form):
    """The confirmation of a deletion by typing the agent's name."""

    typed = RawTextField(label="Type the name to confirm", widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, name: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = name

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if " ".join(typed.split()) != " ".join(
            self.name.split()
        ):  # a name may contain white space that is hard to type
            raise ValidationError(f"The name does not match. Type: {self.name}")
        return typed


class DuplicateForm(forms.Form):
    """The ID, name and owner of a duplicate."""

    id = RawTextField(max_length=128, label="ID", help_text=ID_HELP)
    name = RawTextField(max_length=200, label="Name")
    owner_id = OwnerField()

    def __init__(self, data: Any, *, agent: Agent, version: Version, owners: Sequence[str]) -> None:
        """Build the form. `owners` are those for which the user may create agents."""
        super().__init__(data, initial=suggested_values(agent, version, owners))
        self.owners = owners
        self.fields["owner_id"].set_owners(owners)  # type: ignore[attr-defined]

    def clean_id(self) -> str:
        agent_id: str = self.cleaned_data["id"]
        try:
            schema.validate_fields(schema.as_partial(schema.AgentCreate), {"id": agent_id})
        except schema.ConfigError as error:
            raise ValidationError([issue.message for issue in error.issues]) from error
        if Agent.objects.filter(pk=agent_id).exists():
            raise ValidationError(id_taken_message(agent_id), code="taken")
        return agent_id


class SnapshotForm(forms.Form):
    """The name, message and pin of a version saved by hand."""

    name = RawTextField(required=False, max_length=100, label="Name")
    change_message = RawTextField(
        required=False, max_length=500, label="Message", widget=forms.Textarea(attrs={"rows": 3})
    )
    pinned = forms.BooleanField(required=False, label="Pin it", help_text="A pinned version is never pruned.")


class DiscardDraftForm(forms.Form):
    """The head that was displayed when the user confirmed."""

    head = forms.UUIDField(widget=forms.HiddenInput)


def suggested_values(agent: Agent, version: Version, owners: Sequence[str]) -> dict[str, str]:
    name = f"{version.snapshot['name']} (copy)"
    owner_id = agent.owner_id if agent.owner_id in owners else next(iter(owners), "")
    return {"id": f"{agent.pk[:110]}-copy", "name": name[:200], "owner_id": owner_id}


class ChangeOwnerForm(forms.Form):
    """The new owner: one for which the user is a publisher, or any for superusers."""

    owner_id = OwnerField(
        label="New owner",
        error_messages={"invalid_choice": "You need the Publisher role in the new team. Choose another one."},
    )

    def __init__(self, *args: Any, owners: Sequence[str], any_owner: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if any_owner:
            self.fields["owner_id"] = RawTextField(
                required=False,
                max_length=128,
                label="New owner",
                help_text=SHARED_HELP,
                widget=forms.TextInput(attrs={"list": "owners", "autocomplete": "off"}),
            )
        else:
            self.fields["owner_id"].set_owners(owners)  # type: ignore[attr-defined]

    def clean_owner_id(self) -> str:
        owner_id: str = self.cleaned_data["owner_id"]
        try:
            schema.validate_fields(schema.as_partial(schema.AgentCreate), {"ownerId": owner_id})
        except schema.ConfigError as error:
            raise ValidationError([issue.message for issue in error.issues]) from error
        return owner_id
