"""The form of a new agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.text import slugify

from agentcms.wire.json_types import JSONObject
from agents_app.configuration import schema
from agents_app.editing.new_ids import find_unused_id
from agents_app.forms.editor import AgentEditForm
from agents_app.forms.fields import ID_HELP, OwnerField, RawTextField

NEW_AGENT_CONFIG = {**schema.defaults(), "name": "", "instructions": "", "model": {"provider": "demo", "name": "echo"}}

# They offer what the team may use, so another choice of the team renders them again.
SECTIONS_OF_OWNER = ("#knowledge", "#mcp-tools", "#scorers")


class CreateForm(AgentEditForm):
    """The editor's form with the ID and the team of a new agent."""

    id = RawTextField(
        required=False,
        max_length=128,
        label="ID",
        help_text=f"{ID_HELP} Leave blank to derive it from the name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    owner_id = OwnerField()
    config_model = schema.NewAgent

    def __init__(self, *args: Any, owners: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget.attrs["autofocus"] = True
        self.fields["owner_id"].set_owners(owners)  # type: ignore[attr-defined]
        self.fields["owner_id"].widget.attrs |= {
            "hx-post": self.fields_url,
            "hx-swap": "none",
            "hx-select-oob": ", ".join(SECTIONS_OF_OWNER),
        }

    def body(self, cleaned: dict[str, Any]) -> JSONObject:
        typed = {"id": cleaned["id"]} if cleaned.get("id") else {}
        return {**super().body(cleaned), **typed}

    @property
    def agent_id(self) -> str:
        """Return the submitted ID, or a free one derived from the name."""
        if typed := self.cleaned_data["id"]:
            return str(typed)
        # Shorter than an ID may be: a number is added if it is taken.
        return find_unused_id(slugify(self.cleaned_data["name"])[:100] or "agent")
