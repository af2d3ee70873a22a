"""The form of the editor's page: an agent's configuration in the pieces in which people work on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from pydantic import BaseModel

from agentcms.wire.canonical import canonical
from agents_app.configuration import schema
from agents_app.forms.field_values import (
    MODEL_SETTINGS,
    apply_sampling,
    keep_stored_order,
    pluralize,
    sampling_inputs,
    to_form_values,
)
from agents_app.forms.fields import (
    JSONNumberField,
    KeyListField,
    OptionalKeyField,
    RawTextField,
    ScorersField,
    StrictJSONField,
)
from agents_app.forms.pickers import Picker, integration_tool_options, registry_options, sub_agent_options
from agents_app.models import Agent
from agents_app.registry import Kind, registry

KEY_LIST_FIELDS = ("tools", "workflows", "agents", "integration_tools")
FIELD_FOR_PATH = {"model.provider": "provider", "model.name": "model_name"}


def editor_textarea(kind: str, rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"data-editor": kind, "rows": rows, "spellcheck": "false"})


class AgentEditForm(forms.Form):
    """What the editor sends. `base` is the configuration it was opened with: what differs from it was changed here."""

    name = RawTextField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    description = RawTextField(
        required=False, widget=forms.Textarea(attrs={"rows": 2}), help_text="What people read in the list."
    )
    instructions = RawTextField(required=False, widget=editor_textarea("text", 20))
    provider = RawTextField(max_length=256, widget=forms.TextInput(attrs={"list": "providers", "autocomplete": "off"}))
    model_name = RawTextField(
        label="Model", max_length=256, widget=forms.TextInput(attrs={"list": "model-names", "autocomplete": "off"})
    )
    temperature = JSONNumberField(required=False)
    top_p = JSONNumberField(required=False, label="Top P")
    max_tokens = JSONNumberField(required=False, label="Most tokens")
    model_rest = StrictJSONField(required=False, label="Other settings", widget=editor_textarea("json", 4))
    tools = KeyListField(required=False)
    workflows = KeyListField(required=False)
    agents = KeyListField(required=False, label="Sub-agents")
    integration_tools = KeyListField(required=False)
    more_agents = RawTextField(required=False, label="Another one by its id", max_length=128)
    memory = OptionalKeyField(required=False, max_length=256, widget=forms.Select)
    scorers = ScorersField(required=False)
    input_processors = StrictJSONField(required=False, empty=list, widget=editor_textarea("json", 6))
    output_processors = StrictJSONField(required=False, empty=list, widget=editor_textarea("json", 6))
    default_options = StrictJSONField(required=False, widget=editor_textarea("json", 6))
    metadata = StrictJSONField(required=False, widget=editor_textarea("json", 6))

    version_name = RawTextField(required=False, max_length=100, label="Name of this version")
    message = RawTextField(required=False, max_length=500, widget=forms.Textarea(attrs={"rows": 2}))

    shape: type[BaseModel] = schema.AgentConfig

    def __init__(self, data: Any = None, *, base: dict[str, Any], user: Any, agent: Agent, **options: Any) -> None:
        self.base, self.user, self.agent = base, user, agent
        super().__init__(data, initial=to_form_values(base), **options)
        memories = [(entry.key, entry.title) for entry in registry.entries(Kind.MEMORY)]
        unknown = [key for key in (base["memory"],) if key and registry.get(Kind.MEMORY, key) is None]
        self.fields["memory"].widget.choices = [
            ("", "No memory"),
            *memories,
            *((key, f"{key} (not registered)") for key in unknown),
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in KEY_LIST_FIELDS:
            if name in cleaned:
                cleaned[name] = keep_stored_order(self.base[name], cleaned[name])
        if (more := cleaned.get("more_agents")) and more not in cleaned.get("agents", ()):
            cleaned["agents"] = [*cleaned.get("agents", ()), more]
        if "scorers" in cleaned:
            cleaned["scorers"] = {
                key: apply_sampling(self.base["scorers"].get(key, {}), choice)
                for key, choice in cleaned["scorers"].items()
            }
        if not {"provider", "model_name", "model_rest", *MODEL_SETTINGS} - cleaned.keys():
            cleaned["model"] = self.compose_model(cleaned)
        self.validate_config(cleaned)
        return cleaned

    def compose_model(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        rest = cleaned["model_rest"]
        own = {"provider": cleaned["provider"], "name": cleaned["model_name"]}
        own |= {wire: cleaned[name] for name, wire in MODEL_SETTINGS.items() if cleaned[name] is not None}
        if not isinstance(rest, dict):
            self.add_error("model_rest", "This must be an object.")
            return own
        if twice := sorted(own.keys() & rest.keys()):
            self.add_error("model_rest", f"{', '.join(twice)} has a field of its own. Set it there or here.")
        return {**rest, **own}

    def validate_config(self, cleaned: dict[str, Any]) -> None:
        """The one shape decides; each of its faults is shown at the field that is about it."""
        try:
            schema.validate_fields(schema.as_partial(self.shape), self.body(cleaned))
        except schema.ConfigError as error:
            for issue in error.issues:
                place, message = self.field_for_issue(issue)
                self.add_error(place, ValidationError(message, code="invalid"))

    def body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        return schema.to_wire_dict(cleaned)

    def field_for_issue(self, issue: schema.Issue) -> tuple[str | None, str]:
        if issue.field in FIELD_FOR_PATH:
            return FIELD_FOR_PATH[issue.field], issue.message
        (name, messages), *_ = schema.ConfigError([issue]).message_dict.items()
        name = "model_rest" if name == "model" else name
        return (name if name in self.fields else None), messages[0]

    def changed_fields(self) -> dict[str, Any]:
        """The configuration that differs from what the form was opened with, by name."""
        cleaned = self.cleaned_data
        return {
            name: cleaned[name]
            for name in schema.FIELDS
            if name in cleaned and canonical(cleaned[name]) != canonical(self.base[name])
        }

    def configuration(self) -> dict[str, Any]:
        """The whole configuration as the form has it; where a field is at fault, as it was."""
        return {name: self.cleaned_data.get(name, self.base[name]) for name in schema.FIELDS}

    # --- what the template shows

    def chosen(self, name: str) -> list[str]:
        value = self[name].value()
        return list(value) if isinstance(value, (list, tuple)) else []

    def picker(self, name: str, label: str, kind: Kind) -> Picker:
        chosen = self.chosen(name)
        return Picker.of(name, label, registry_options(kind, chosen), chosen)

    @cached_property
    def pickers(self) -> dict[str, Picker]:
        sub_agents = sub_agent_options(self.user, self.agent.owner_id, self.agent.pk, self.chosen("agents"))
        return {
            "tools": self.picker("tools", "Tools", Kind.TOOL),
            "workflows": self.picker("workflows", "Workflows", Kind.WORKFLOW),
            "agents": Picker.of("agents", "Sub-agents", sub_agents, self.chosen("agents")),
            "integration_tools": Picker.of(
                "integration_tools",
                "Integration tools",
                integration_tool_options(),
                self.chosen("integration_tools"),
            ),
        }

    @property
    def length_hint(self) -> str:
        """Length of the instructions, in the words that static/js/fields.js writes while somebody types."""
        characters = len((self["instructions"].value() or "").replace("\r\n", "\n"))
        tokens = -(-characters // 4)
        return f"{pluralize(characters, 'character')} · about {pluralize(tokens, 'token')} (estimate)"

    @property
    def fields_with_errors(self) -> list[Any]:
        """The fields at fault, in the order of the page."""
        return [field for field in self if field.errors]

    @property
    def scorer_rows(self) -> list[dict[str, Any]]:
        """Every registered scorer, and those that the agent names all the same."""
        known = {entry.key: entry for entry in registry.entries(Kind.SCORER)}
        value = self["scorers"].value() or {}
        rows = []
        for key in [*(key for key in value if key not in known), *known]:
            kind, amount = sampling_inputs(value.get(key))
            entry = known.get(key)
            rows.append(
                {
                    "key": key,
                    "title": entry.title if entry else key,
                    "description": entry.description if entry else "",
                    "is_registered": entry is not None,
                    "checked": key in value,
                    "type": kind,
                    "amount": amount,
                }
            )
        return rows

    @property
    def providers(self) -> Sequence[Any]:
        return registry.selectable(Kind.MODEL_PROVIDER)

    @property
    def processors(self) -> Sequence[Any]:
        return registry.entries(Kind.PROCESSOR)


class ExistingAgentForm(AgentEditForm):
    """The form of an agent that is there already. It knows which head and which live version it was opened on."""

    head = forms.UUIDField(required=False, widget=forms.HiddenInput)
    live = forms.UUIDField(required=False, widget=forms.HiddenInput)

    @classmethod
    def opening(cls, agent: Agent, user: Any) -> ExistingAgentForm:
        """The form as a page opens it: on the head."""
        return cls(base=head_configuration(agent), user=user, agent=agent)

    @classmethod
    def sent(cls, data: Any, agent: Agent, user: Any) -> ExistingAgentForm:
        """The form as it came back. Where the version it was opened on is gone, it is compared with the head."""
        opened = find_version(agent, parse_uuid(data.get("head")))
        base = agent.resolved(opened) if opened else head_configuration(agent)
        return cls(data, base=base, user=user, agent=agent)

    def __init__(self, *args: Any, agent: Agent, **kwargs: Any) -> None:
        super().__init__(*args, agent=agent, **kwargs)
        for name in ("version_name", "message"):  # they stand beside the form; what belongs to a save is no text of it
            self.fields[name].widget.attrs |= {"form": "agent-form", "data-of-save": True}
        self.initial = {**self.initial, "head": agent.head_version_id, "live": agent.active_version_id}

    @property
    def accepted_versions(self) -> list[str]:
        """The head and live versions of a conflict on top of which the person chose to go, and whether to publish."""
        return str(self.data.get("keep_on", "")).split()

    @property
    def publishes(self) -> bool:
        return (self.accepted_versions[2:] or [str(self.data.get("publish"))]) == ["yes"]

    def stale_for(self, row: Agent, *, publishes: bool) -> str:
        """What moved under the form since it was opened: "head", "live" or nothing that matters."""
        if self.accepted_versions[:2] == [str(row.head_version_id), str(row.active_version_id)]:
            return ""
        if not self.pointer_unchanged(row, "head"):
            return "head"
        return "live" if publishes and not self.pointer_unchanged(row, "live") else ""

    def pointer_unchanged(self, row: Agent, name: str) -> bool:
        """Whether the pointer still says what it said: another version of the same picture does."""
        version: Any = row.head_version if name == "head" else row.active_version
        seen = self.cleaned_data.get(name)
        if seen == version.pk:
            return True
        other = find_version(row, seen)
        return other is not None and other.snapshot_hash == version.snapshot_hash


def head_configuration(agent: Agent) -> dict[str, Any]:
    """The configuration of the row, which is its head's picture, by Python name."""
    return {name: getattr(agent, name) for name in schema.FIELDS}


def find_version(agent: Agent, version_id: UUID | None) -> Any:
    """One of the agent's versions, or None where it is not there any more."""
    return agent.versions.filter(pk=version_id).first() if version_id else None


def parse_uuid(text: Any) -> UUID | None:
    try:
        return UUID(str(text))
    except ValueError:
        return None
