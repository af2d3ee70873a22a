"""The form of a new agent: the editor's, with what only a new agent is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import slugify

from agents_app import shapes
from agents_app.fields import KeptText
from agents_app.forms_page import EditForm
from agents_app.selected import free_id


class CreateForm(EditForm):
    """The editor's form with what only a new agent is asked."""

    id = KeptText(
        required=False,
        max_length=128,
        label="Identifier",
        help_text="Stands in addresses and cannot be changed later. Left empty, it is made from the name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    owner_id = forms.ChoiceField(required=False, label="Owner")
    shape = shapes.AgentCreate

    def __init__(self, *args: Any, owners: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owners = owners
        self.fields["owner_id"].choices = [(owner, owner or "Shared space") for owner in owners]  # type: ignore[attr-defined]

    def clean_owner_id(self) -> str:
        owner_id: str = self.cleaned_data["owner_id"]
        if owner_id not in self.owners:  # a choice field lets the blank owner through as no choice
            raise ValidationError("You may not create agents there. Choose one of your owners.", code="forbidden")
        return owner_id

    def body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        typed = {"id": cleaned["id"]} if cleaned.get("id") else {}
        return {**super().body(cleaned), **typed}

    @property
    def wanted_id(self) -> str:
        """The id that was typed, or one made from the name that nobody has yet."""
        if typed := self.cleaned_data["id"]:
            return str(typed)
        return free_id(slugify(self.cleaned_data["name"])[:100] or "agent")
