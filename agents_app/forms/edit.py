"""The form of the editor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField
from pydantic import BaseModel

from access_app.caller import Caller
from agentcms.ids import parse_uuid
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
from agents_app.registry import Entry, Kind, registry
from versions_app.models import AgentVersion
from versions_app.models.version import get_head_version, get_live_version

KEY_LIST_FIELDS = ("tools", "workflows", "agents", "integration_tools")
FIELD_FOR_PATH = {"model.provider": "provider", "model.name": "model_name"}


def editor_textarea(kind: str, rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"data-editor": kind, "rows": rows, "spellcheck": "false"})


class AgentEditForm(forms.Form):
    """The editor's form. Fields that differ from `base`, the configuration it was opened with, are changes."""

    name = RawTextField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    description = RawTextField(
        required=False, widget=forms.Textarea(attrs={"rows": 2}), help_text="Shown in the list of agents."
    )
    instructions = RawTextField(required=False, widget=editor_textarea("text", 20))
    provider = RawTextField(max_length=256, widget=forms.TextInput(attrs={"list": "providers", "autocomplete": "off"}))
    model_name = RawTextField(
        label="Model", max_length=256, widget=forms.TextInput(attrs={"list": "model-names", "autocomplete": "off"})
    )
    temperature = JSONNumberField(required=False)
    top_p = JSONNumberField(required=False, label="Top P")
    max_tokens = JSONNumberField(required=False, label="Max tokens")
    model_rest = StrictJSONField(required=False, label="Other settings", widget=editor_textarea("json", 4))
    tools = KeyListField(required=False)
    workflows = KeyListField(required=False)
    agents = KeyListField(required=False, label="Sub-agents")
    integration_tools = KeyListField(required=False)
    more_agents = RawTextField(required=False, label="Add by ID", max_length=128)
    memory = OptionalKeyField(required=False, max_length=256, widget=forms.Select)
    scorers = ScorersField(required=False)
    input_processors = StrictJSONField(required=False, empty=list, widget=editor_textarea("json", 6))
    output_processors = StrictJSONField(required=False, empty=list, widget=editor_textarea("json", 6))
    default_options = StrictJSONField(required=False, widget=editor_textarea("json", 6))
    metadata = StrictJSONField(required=False, widget=editor_textarea("json", 6))

    version_name = RawTextField(required=False, max_length=100, label="Version name")
    message = RawTextField(required=False, max_length=500, widget=forms.Textarea(attrs={"rows": 2}))

    config_model: type[BaseModel] = schema.AgentConfig

    def __init__(self, data: Any = None, *, base: dict[str, Any], user: Caller, agent: Agent, **options: Any) -> None:
        self.base, self.user, self.agent = base, user, agent
        super().__init__(data, initial=to_form_values(base), **options)
        memories = [(entry.key, entry.title) for entry in registry.entries(Kind.MEMORY)]
        missing = [key for key in (base["memory"],) if key and registry.get(Kind.MEMORY, key) is None]
        self.fields["memory"].widget.choices = [
            ("", "No memory"),
            *memories,
            *((key, f"{key} (not registered)") for key in missing),
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
        model = {"provider": cleaned["provider"], "name": cleaned["model_name"]}
        model |= {wire: cleaned[name] for name, wire in MODEL_SETTINGS.items() if cleaned[name] is not None}
        if not isinstance(rest, dict):
            self.add_error("model_rest", "This must be an object.")
            return model
        if duplicates := sorted(model.keys() & rest.keys()):
            self.add_error("model_rest", f"Set {', '.join(duplicates)} in its own field instead.")
        return {**rest, **model}

    def validate_config(self, cleaned: dict[str, Any]) -> None:
        """Validate with the schema of agents, and add each issue to its field."""
        try:
            schema.validate_fields(schema.as_partial(self.config_model), self.body(cleaned))
        except schema.ConfigError as error:
            for issue in error.issues:
                field, message = self.field_for_issue(issue)
                self.add_error(field, ValidationError(message, code="invalid"))

    def body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        return schema.to_wire_dict(cleaned)

    def field_for_issue(self, issue: schema.Issue) -> tuple[str | None, str]:
        if issue.field in FIELD_FOR_PATH:
            return FIELD_FOR_PATH[issue.field], issue.message
        (name, messages), *_ = schema.ConfigError([issue]).message_dict.items()
        name = "model_rest" if name == "model" else name
        return (name if name in self.fields else None), messages[0]

    def changed_fields(self) -> dict[str, Any]:
        """Return the configuration fields that differ from those the form was opened with."""
        cleaned = self.cleaned_data
        return {
            name: cleaned[name]
            for name in schema.FIELDS
            if name in cleaned and canonical(cleaned[name]) != canonical(self.base[name])
        }

    def configuration(self) -> dict[str, Any]:
        """Return the whole configuration of the form. Invalid fields have the value they were opened with."""
        return {name: self.cleaned_data.get(name, self.base[name]) for name in schema.FIELDS}

    # --- properties for the template

    def selected_keys(self, name: str) -> list[str]:
        value = self[name].value()
        return list(value) if isinstance(value, (list, tuple)) else []

    def picker(self, name: str, label: str, kind: Kind) -> Picker:
        selected = self.selected_keys(name)
        return Picker.build(name, label, registry_options(kind, selected), selected)

    @cached_property
    def pickers(self) -> dict[str, Picker]:
        sub_agents = sub_agent_options(self.user, self.agent.owner_id, self.agent.pk, self.selected_keys("agents"))
        return {
            "tools": self.picker("tools", "Tools", Kind.TOOL),
            "workflows": self.picker("workflows", "Workflows", Kind.WORKFLOW),
            "agents": Picker.build("agents", "Sub-agents", sub_agents, self.selected_keys("agents")),
            "integration_tools": Picker.build(
                "integration_tools",
                "Integration tools",
                integration_tool_options(),
                self.selected_keys("integration_tools"),
            ),
        }

    @property
    def length_hint(self) -> str:
        """Return the length of the instructions, in the format of static/js/fields.js."""
        characters = len((self["instructions"].value() or "").replace("\r\n", "\n"))
        tokens = -(-characters // 4)
        return f"{pluralize(characters, 'character')} · about {pluralize(tokens, 'token')} (estimate)"

    @property
    def fields_with_errors(self) -> list[BoundField]:
        """Return the fields with errors, in the order of the page."""
        return [field for field in self if field.errors]

    @property
    def scorer_rows(self) -> list[dict[str, Any]]:
        """Return the registered scorers, after those of the agent that are not registered."""
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
    def providers(self) -> Sequence[Entry]:
        return registry.selectable(Kind.MODEL_PROVIDER)

    @property
    def processors(self) -> Sequence[Entry]:
        return registry.entries(Kind.PROCESSOR)


class ExistingAgentForm(AgentEditForm):
    """The form of an existing agent. It knows the head and live versions that it was opened on."""

    head = forms.UUIDField(required=False, widget=forms.HiddenInput)
    live = forms.UUIDField(required=False, widget=forms.HiddenInput)

    @classmethod
    def for_agent(cls, agent: Agent, user: Caller) -> ExistingAgentForm:
        """Build the unbound form, with the head's configuration."""
        return cls(base=head_configuration(agent), user=user, agent=agent)

    @classmethod
    def from_request(cls, data: Any, agent: Agent, user: Caller) -> ExistingAgentForm:
        """Build the submitted form. If the version it was opened on was pruned, the head is used instead."""
        opened = find_version_by_id(agent, parse_uuid(data.get("head", "")))
        base = agent.resolved(opened) if opened else head_configuration(agent)
        return cls(data, base=base, user=user, agent=agent)

    def __init__(self, *args: Any, agent: Agent, **kwargs: Any) -> None:
        super().__init__(*args, agent=agent, **kwargs)
        for name in ("version_name", "message"):  # outside the form element, and not unsaved text
            self.fields[name].widget.attrs |= {"form": "agent-form", "data-of-save": True}
        self.initial = {**self.initial, "head": agent.head_version_id, "live": agent.active_version_id}

    @property
    def accepted_versions(self) -> list[str]:
        """Return the head and live versions that the user accepted in a conflict, and whether to publish."""
        return str(self.data.get("keep_on", "")).split()

    @property
    def publishes(self) -> bool:
        return (self.accepted_versions[2:] or [str(self.data.get("publish"))]) == ["yes"]

    def find_conflict(self, row: Agent, *, publishes: bool) -> str:
        """Return which version conflicts with the form since it was opened: "head", "live" or an empty text."""
        if self.accepted_versions[:2] == [str(row.head_version_id), str(row.active_version_id)]:
            return ""
        if not self.pointer_unchanged(row, "head"):
            return "head"
        return "live" if publishes and not self.pointer_unchanged(row, "live") else ""

    def pointer_unchanged(self, row: Agent, name: str) -> bool:
        """Return whether the head or live version has the same snapshot as when the form was opened."""
        version = get_head_version(row) if name == "head" else get_live_version(row)
        opened_id = self.cleaned_data.get(name)
        if opened_id == version.pk:
            return True
        opened = find_version_by_id(row, opened_id)
        return opened is not None and opened.snapshot_hash == version.snapshot_hash


def head_configuration(agent: Agent) -> dict[str, Any]:
    """Return the configuration of an agent's head, which is that of its row, by Python name."""
    return {name: getattr(agent, name) for name in schema.FIELDS}


def find_version_by_id(agent: Agent, version_id: UUID | None) -> AgentVersion | None:
    """Return a version of the agent, or None if it was pruned."""
    return AgentVersion.objects.filter(agent=agent, pk=version_id).first() if version_id else None
