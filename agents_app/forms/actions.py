"""The forms in the dialogs of actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from access_app.caller import Caller
from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONObject
from agents_app.configuration import schema
from agents_app.configuration.sub_agents import CircularReference, dependents_payload
from agents_app.editing.bulk import Selection
from agents_app.editing.new_ids import copy_id
from agents_app.forms.fields import ID_HELP, SHARED_HELP, OwnerField, RawTextField, id_taken_message
from agents_app.forms.form_data import FormData
from agents_app.models import Agent
from agents_app.models.version_protocol import Version

OWNER_CHANGE_MESSAGE = "Agents of other teams use this agent and will lose it. Select this to change the team anyway."


class ArchiveForm(forms.Form):
    """The confirmation of an action that takes an agent away from those that use it."""

    confirmed = forms.BooleanField(
        label="Archive it although other agents use it",
        error_messages={"required": "Other agents use this agent. Select this to archive it anyway."},
    )

    def __init__(self, *args: Any, is_used: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_used:
            del self.fields["confirmed"]


class TypedForm(forms.Form):
    """A confirmation by typing a text."""

    typed = RawTextField(label="Type the name to confirm", widget=forms.TextInput(attrs={"autocomplete": "off"}))
    mismatch_message = "The name does not match. Type: {expected}"

    def __init__(self, *args: Any, expected: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.expected = expected

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if " ".join(typed.split()) != " ".join(self.expected.split()):  # a name may have white space hard to type
            raise ValidationError(self.mismatch_message.format(expected=self.expected))
        return typed


class DeleteForm(TypedForm, ArchiveForm):
    """The confirmation of a deletion by typing the agent's name."""

    field_order = ("confirmed", "typed")

    def __init__(self, *args: Any, name: str, is_used: bool, **kwargs: Any) -> None:
        super().__init__(*args, expected=name, is_used=is_used, **kwargs)
        if is_used:
            field = self.fields["confirmed"]
            field.label = "Delete it although other agents use it"
            field.error_messages["required"] = "Other agents use this agent. Select this to delete it anyway."


class DeleteSelectedForm(TypedForm):
    """The confirmation of the deletion of several agents by typing how many: "delete 3 agents"."""

    mismatch_message = "This does not match. Type: {expected}"

    def __init__(self, *args: Any, count: int, possible_count: int, **kwargs: Any) -> None:
        """Build the form for `count` agents, or `possible_count` with those that the user may still select."""
        super().__init__(*args, expected=delete_phrase(count), **kwargs)
        self.count = count
        self.fields["typed"].label = f"Type “{delete_phrase(count or possible_count)}” to confirm"
        if 0 < count < possible_count:
            self.fields["typed"].help_text = f"With all agents that are in use: “{delete_phrase(possible_count)}”."

    def clean(self) -> dict[str, Any]:
        if not self.count:
            raise ValidationError("No agent is selected. Select an agent that is in use, or cancel.")
        return super().clean() or {}


def build_removal_form(name: str, data: FormData | None, selection: Selection) -> forms.Form:
    """Return the form that confirms the action `archive` or `delete` on several agents."""
    if name == "archive":
        return forms.Form(data)
    return DeleteSelectedForm(data, count=selection.agent_count, possible_count=selection.possible_count)


class RestoreDeletedForm(forms.Form):
    """The ID of an agent that is restored from the trash: its own, or another one if that is taken."""

    id = RawTextField(max_length=128, label="ID", help_text=ID_HELP)

    def __init__(self, data: FormData | None, *, own_id: str) -> None:
        super().__init__(data, initial={"id": own_id})
        self.own_id = own_id

    def clean_id(self) -> str:
        agent_id: str = self.cleaned_data["id"]
        return agent_id if agent_id == self.own_id else clean_new_id(agent_id)


def delete_phrase(count: int) -> str:
    return f"delete {pluralize(count, 'agent')}"


def clean_new_id(agent_id: str) -> str:
    """Return the ID of a new agent. Raise ValidationError for an invalid or a taken one."""
    try:
        # Partial, because the form has only the ID.
        schema.validate_fields(schema.as_partial(schema.NewAgent), {"id": agent_id})
    except schema.ConfigError as error:
        raise ValidationError([issue.message for issue in error.issues]) from error
    if Agent.objects.filter(pk=agent_id).exists():
        raise ValidationError(id_taken_message(agent_id), code="taken")
    return agent_id


class DuplicateForm(forms.Form):
    """The ID, name and owner of a duplicate."""

    id = RawTextField(max_length=128, label="ID", help_text=ID_HELP)
    name = RawTextField(max_length=200, label="Name", widget=forms.TextInput(attrs={"autofocus": True}))
    owner_id = OwnerField()

    def __init__(self, data: FormData | None, *, agent: Agent, version: Version, owners: Sequence[str]) -> None:
        """Build the form. `owners` are those for which the user may create agents."""
        # Not the ids of the editor, which can open the form in a dialog.
        super().__init__(data, initial=suggested_values(agent, version, owners), auto_id="duplicate_%s")
        self.owners = owners
        self.fields["owner_id"].set_owners(owners)  # type: ignore[attr-defined]

    def clean_id(self) -> str:
        return clean_new_id(self.cleaned_data["id"])

    def save(self, agent: Agent, version: Version) -> Agent | None:
        """Duplicate a version by a valid form. Return None, with the error in the form, if that fails."""
        values = self.cleaned_data
        try:
            with transaction.atomic():
                return agent.duplicate(values["id"], values["owner_id"], version, values["name"])
        except CircularReference as error:
            self.add_error(None, error.summary)
        except ValidationError as error:
            self.add_error(None, error.messages)
        except IntegrityError:  # somebody took the ID since it was validated
            self.add_error("id", id_taken_message(values["id"]))
        return None


class SnapshotForm(forms.Form):
    """The name, message and pin of a version saved by hand."""

    name = RawTextField(max_length=100, label="Name", widget=forms.TextInput(attrs={"autofocus": True}))
    change_message = RawTextField(
        required=False, max_length=500, label="Message", widget=forms.Textarea(attrs={"rows": 3})
    )
    pinned = forms.BooleanField(required=False, label="Pin it", help_text="A pinned version is never pruned.")


class DiscardDraftForm(forms.Form):
    """The head that was displayed when the user confirmed."""

    head = forms.UUIDField(widget=forms.HiddenInput)


def suggested_values(agent: Agent, version: Version, owners: Sequence[str]) -> dict[str, str]:
    # Cut below to the length of the column, which the name of the original may use up.
    name = f"{version.snapshot['name']} (copy)"
    owner_id = agent.owner_id if agent.owner_id in owners else next(iter(owners), "")
    return {"id": copy_id(agent), "name": name[:200], "owner_id": owner_id}


class ChangeOwnerForm(forms.Form):
    """The new owner: one for which the user is a publisher, or any for superusers.

    If agents of other owners lose the agent, `used_by` has them, and the user confirms the change.
    """

    confirmed = forms.BooleanField(required=False, label="Change the team although other agents use it")

    owner_id = OwnerField(
        label="New owner",
        error_messages={"invalid_choice": "You need the Publisher role in the new team. Choose another one."},
    )

    def __init__(
        self, data: FormData | None, *, user: Caller, agent: Agent, owners: Sequence[str], any_owner: bool
    ) -> None:
        super().__init__(data, initial={"owner_id": agent.owner_id})
        self.user, self.agent = user, agent
        self.used_by: JSONObject = {"total": 0}
        # A superuser may also name a team that has no members and no agents yet.
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
            # Partial, because the form has only the owner.
            schema.validate_fields(schema.as_partial(schema.AgentCreate), {"ownerId": owner_id})
        except schema.ConfigError as error:
            raise ValidationError([issue.message for issue in error.issues]) from error
        return owner_id

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "owner_id" in cleaned:
            self.used_by = dependents_payload(self.user, self.agent, new_owner_id=cleaned["owner_id"])
            if self.used_by["total"] and not cleaned["confirmed"]:
                self.add_error("confirmed", OWNER_CHANGE_MESSAGE)
        return cleaned
