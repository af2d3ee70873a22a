"""The form of a new agent: the editor's, with what only a new agent is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.text import slugify

from agents_app.configuration import schema
from agents_app.editing.bulk import find_unused_id
from agents_app.forms.edit import AgentEditForm
from agents_app.forms.fields import OwnerField, RawTextField


class CreateForm(AgentEditForm):
    """The editor's form with what only a new agent is asked."""

    id = RawTextField(
        required=False,
        max_length=128,
        label="Identifier",
        help_text="Stands in addresses and cannot be changed later. Left empty, it is made from the name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    owner_id = OwnerField()
    shape = schema.AgentCreate

    def __init__(self, *args: Any, owners: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget.attrs["autofocus"] = True
        self.fields["owner_id"].offer(owners)  # type: ignore[attr-defined]

    def body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        typed = {"id": cleaned["id"]} if cleaned.get("id") else {}
        return {**super().body(cleaned), **typed}

    @property
    def wanted_id(self) -> str:
        """The id that was typed, or one made from the name that nobody has yet."""
        if typed := self.cleaned_data["id"]:
            return str(typed)
        return find_unused_id(slugify(self.cleaned_data["name"])[:100] or "agent")
