"""The form of the editor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField
from django.urls import reverse
from pydantic import BaseModel

from access_app.caller import Caller
from agentcms.ids import parse_uuid
from agentcms.wire.canonical import canonical
from agents_app.configuration import schema
from agents_app.configuration.references import find_missing_references
from agents_app.configuration.variables import Variable, variables_of
from agents_app.forms import memory_field
from agents_app.forms.field_values import (
    DURABLE_MODES,
    MODEL_SETTINGS,
    apply_sampling,
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
)
from agents_app.forms.knowledge import BaseRow, base_rows, compose_knowledge
from agents_app.forms.members import is_line
from agents_app.forms.memory_field import MemoryOptionsField, MemorySection
from agents_app.forms.model_fields import METADATA_MEMBERS, MODEL_MEMBERS, OPTION_MEMBERS
from agents_app.forms.object_field import ObjectField, StructuredValue, stored_value
from agents_app.forms.pickers import KIND_BY_FIELD, OptionSource, Picker, build_picker
from agents_app.forms.processors_field import ProcessorsField
from agents_app.forms.tools.background import MODES, USES, TaskToolRow, compose_background, mode_of, tool_rows
from agents_app.forms.tools.mcp import ServerRows, compose_selection, server_rows
from agents_app.forms.variables_field import VariablesField
from agents_app.forms.variants_field import VariantInputs
from agents_app.models import Agent
from agents_app.registry import Entry, Kind, registry
from runs_app.providers.model_settings import known_setting_names
from runs_app.requests.options import known_option_names
from versions_app.compare.merge import Merge, merge_snapshots
from versions_app.models import AgentVersion
from versions_app.models.version import get_head_version, get_live_version

STRUCTURED_FIELDS = (
    "request_context_schema",
    "model_rest",
    "input_processors",
    "output_processors",
    "default_options",
    "metadata",
)
KEY_LIST_FIELDS = ("tools", "workflows", "agents", "integration_tools")
RESTORED_FIELDS = ("name", "description", "instructions", "provider", "model_name", "memory", *KEY_LIST_FIELDS)
# The fields of each section that is one line while nothing is set in it, by the id of the section.
SECTION_FIELDS = {
    "tools": ("tools", "integration_tools"),
    "workflows": ("workflows",),
    "sub-agents": ("agents",),
    "memory": ("memory_kind", "memory"),
    "scorers": ("scorers",),
    "processors": ("input_processors", "output_processors"),
    "options": ("default_options", "durable_mode"),
    "metadata": ("metadata",),
}
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
    request_context_schema = VariablesField()
    provider = RawTextField(max_length=256, widget=forms.TextInput(attrs={"list": "providers", "autocomplete": "off"}))
    model_name = RawTextField(
        label="Model", max_length=256, widget=forms.TextInput(attrs={"list": "model-names", "autocomplete": "off"})
    )
    temperature = JSONNumberField(required=False)
    top_p = JSONNumberField(required=False, label="Top P")
    max_tokens = JSONNumberField(required=False, label="Max tokens")
    model_rest = ObjectField(label="Other settings", members=MODEL_MEMBERS)
    tools = KeyListField(required=False)
    workflows = KeyListField(required=False)
    agents = KeyListField(required=False, label="Sub-agents")
    integration_tools = KeyListField(required=False)
    memory_kind = forms.ChoiceField(required=False, label="Memory", choices=memory_field.KINDS)
    memory = OptionalKeyField(required=False, max_length=256, widget=forms.Select, label="Registered memory")
    memory_options = MemoryOptionsField(required=False)
    scorers = ScorersField(required=False)
    input_processors = ProcessorsField()
    output_processors = ProcessorsField()
    default_options = ObjectField(members=OPTION_MEMBERS)
    durable_mode = forms.ChoiceField(
        required=False,
        label="Durable",
        choices=DURABLE_MODES,
        help_text="A durable run continues in another process when its own stops.",
    )
    durable_steps = JSONNumberField(required=False, label="Most steps of a durable run")
    metadata = ObjectField(members=METADATA_MEMBERS)

    version_name = RawTextField(required=False, max_length=100, label="Version name")
    message = RawTextField(required=False, max_length=500, widget=forms.Textarea(attrs={"rows": 2}))

    config_model: type[BaseModel] = schema.AgentConfig
    background_modes, background_uses = MODES, USES
    show = ""  # a field of STRUCTURED_FIELDS and the view to change to, such as "metadata:json"

    def __init__(self, data: Any = None, *, base: dict[str, Any], user: Caller, agent: Agent, **options: Any) -> None:
        self.base, self.user, self.agent = base, user, agent
        super().__init__(data, initial=to_form_values(base), **options)
        memories = [(entry.key, entry.title) for entry in registry.entries(Kind.MEMORY)]
        keys = [base["memory"]] if isinstance(base["memory"], str) else []
        missing = [key for key in keys if key and registry.get(Kind.MEMORY, key) is None]
        self.fields["memory"].widget.choices = [
            ("", "None"),
            *memories,
            *((key, f"{key} (not registered)") for key in missing),
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self.restore_stored_texts(cleaned)
        if "scorers" in cleaned:
            cleaned["scorers"] = self.restore_scorers(cleaned["scorers"])
        if not {"provider", "model_name", "model_rest", *MODEL_SETTINGS} - cleaned.keys():
            cleaned["model"] = self.compose_model(cleaned)
        # A page of the previous release does not send the field.
        if "durable_mode" in self.data and not {"durable_mode", "durable_steps"} - cleaned.keys():
            cleaned["durable"] = self.compose_durable(cleaned["durable_mode"], cleaned["durable_steps"])
        if "memory" in cleaned:
            cleaned["memory"] = self.compose_memory(cleaned)
        if "knowledge" in self.data:
            cleaned["knowledge"] = compose_knowledge(self.data, self.base["knowledge"])
        if "mcp_clients" in self.data:
            cleaned["mcp_clients"] = compose_selection(self.data, self.base["mcp_clients"])
        if "background_tasks" in self.data:
            cleaned["background_tasks"], errors = compose_background(self.data, self.base["background_tasks"])
            for message in errors:
                self.add_error(None, message)
        if "conditional" in self.data:
            cleaned |= self.compose_variants()
        self.validate_config(cleaned)
        return cleaned

    def compose_variants(self) -> dict[str, Any]:
        values = self.variants.compose(self.base["conditional"], self.base["context_keys"])
        for message in self.variants.errors:
            self.add_error(None, message)
        return dict(zip(("conditional", "context_keys"), values, strict=True))

    def restore_stored_texts(self, cleaned: dict[str, Any]) -> None:
        """Replace texts that a browser cannot send as they are stored, if nobody changed them."""
        model = self.base["model"]
        stored = {**self.base, "provider": model.get("provider"), "model_name": model.get("name")}
        for name in RESTORED_FIELDS:
            field: Any = self.fields[name]
            if cleaned.get(name) and isinstance(stored[name], str | list):
                cleaned[name] = field.restore(cleaned[name], stored[name])

    def restore_scorers(self, chosen: dict[str, Any]) -> dict[str, Any]:
        """Return the chosen scorers with the stored members that have no input, and the stored ones without a row."""
        stored = self.base["scorers"]
        hidden = {key: choice for key, choice in stored.items() if not is_line(key)}
        return {**hidden, **{key: apply_sampling(stored.get(key, {}), choice) for key, choice in chosen.items()}}

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

    def compose_durable(self, mode: str, steps: Any) -> Any:
        if steps is None:
            return {"yes": True, "no": False}.get(mode)
        if mode != "yes":
            self.add_error("durable_steps", "Only a durable run has this limit. Choose Yes, or leave this blank.")
        if not isinstance(steps, int) or steps < 1:
            self.add_error("durable_steps", "This must be a whole number above 0.")
            return self.base["durable"]
        stored = self.base["durable"]
        return stored if isinstance(stored, dict) and stored["maxSteps"] == steps else {"maxSteps": steps}

    def compose_memory(self, cleaned: dict[str, Any]) -> Any:
        """Return the memory of the chosen kind. A page of the previous release has no kind and knows only keys."""
        if "memory_kind" not in self.data:
            return self.base["memory"] if isinstance(self.base["memory"], dict) else cleaned["memory"]
        if cleaned.get("memory_kind") == "options":
            try:
                return memory_field.compose(self.base["memory"], cleaned["memory_options"])
            except ValidationError as error:
                self.add_error("memory_options", error)
                return self.base["memory"]
        if cleaned.get("memory_kind") == "registered" and cleaned["memory"] is None:
            self.add_error("memory", "Choose a registered memory.")
        return cleaned["memory"] if cleaned.get("memory_kind") == "registered" else None

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
        name = "memory_options" if name == "memory" and "." in issue.field else name
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

    @property
    def fields_url(self) -> str:
        """Return the URL that renders the submitted fields again, without saving them."""
        return reverse("agents:new_fields")

    @property
    def option_urls(self) -> dict[str, str]:
        """Return the URL of the search of each picker."""
        return {name: reverse("agents:new_options", args=[name]) for name in KIND_BY_FIELD}

    @property
    def setting_names(self) -> list[str]:
        """Return the names of model settings that have no field of their own."""
        return sorted(known_setting_names() - {member.name for member in MODEL_MEMBERS} - {*MODEL_SETTINGS.values()})

    @property
    def option_names(self) -> list[str]:
        """Return the names of options of a run that have no field of their own."""
        return sorted(known_option_names() - {member.name for member in OPTION_MEMBERS})

    def selected_keys(self, name: str) -> list[str]:
        value = self[name].value()
        return list(value) if isinstance(value, (list, tuple)) else []

    def options(self, name: str) -> OptionSource:
        return OptionSource(name, self.user, self.agent)

    @cached_property
    def pickers(self) -> dict[str, Picker]:
        return {
            name: build_picker(self.options(name), str(self[name].label), self.selected_keys(name))
            for name in KEY_LIST_FIELDS
        }

    @cached_property
    def structured(self) -> dict[str, StructuredValue]:
        """Return the fields that are edited by inputs or as JSON. `show` names one and the view to change to."""
        name_to_show, _, view = self.show.partition(":")
        return {
            name: StructuredValue.build(self[name], view if name == name_to_show else "") for name in STRUCTURED_FIELDS
        }

    @property
    def length_hint(self) -> str:
        """Return the length of the instructions, in the format of static/js/fields.js."""
        characters = len((self["instructions"].value() or "").replace("\r\n", "\n"))
        tokens = -(-characters // 4)
        return f"{pluralize(characters, 'character')} · about {pluralize(tokens, 'token')} (estimate)"

    @property
    def variables(self) -> list[Variable]:
        """Return the declared variables, and those that only the instructions name."""
        declared = stored_value(self.fields["request_context_schema"], self.submitted("request_context_schema"))
        return variables_of({"instructions": self["instructions"].value(), "requestContextSchema": declared})

    def submitted(self, name: str) -> Any:
        """Return the submitted or else the stored value of a field, not as its text."""
        return self[name].data if self.is_bound else self[name].initial

    @cached_property
    def knowledge_bases(self) -> list[BaseRow]:
        """Return the knowledge bases with the options of the agent, as submitted or stored."""
        is_sent = self.is_bound and "knowledge" in self.data
        value = compose_knowledge(self.data, self.base["knowledge"]) if is_sent else self.base["knowledge"]
        return base_rows(value, self.agent.owner_id)

    @cached_property
    def mcp_servers(self) -> list[ServerRows]:
        """Return the MCP servers with their tools, as submitted or stored."""
        is_sent = self.is_bound and "mcp_clients" in self.data
        value = compose_selection(self.data, self.base["mcp_clients"]) if is_sent else self.base["mcp_clients"]
        return server_rows(value, self.agent.owner_id)

    @property
    def background_rows(self) -> list[TaskToolRow]:
        """Return the tools of the agent with what it says of their background tasks, as submitted or stored."""
        keys = [key for name in ("tools", "integration_tools") for key in self.selected_keys(name)]
        keys += [f"workflow-{key}" for key in self.selected_keys("workflows")]
        keys += [f"agent-{key}" for key in self.selected_keys("agents")]
        keys += [tool.key for server in self.mcp_servers for tool in server.tools if tool.is_selected]
        return tool_rows(self.background_value[0], keys)

    @property
    def background_value(self) -> tuple[Any, list[str]]:
        """Return the background tasks as submitted or stored, and the errors of what was submitted."""
        if self.is_bound and "background_tasks" in self.data:
            return compose_background(self.data, self.base["background_tasks"])
        return self.base["background_tasks"], []

    @property
    def background_mode(self) -> str:
        return mode_of(self.background_value[0])

    @property
    def background_errors(self) -> list[str]:
        return self.background_value[1]

    @cached_property
    def variants(self) -> VariantInputs:
        """Return the variants, as submitted or stored."""
        if self.is_bound and "conditional" in self.data:
            return VariantInputs.submitted(self.data, self.options("tools"))
        return VariantInputs.stored(self.base["conditional"], self.base["context_keys"], self.options("tools"))

    @property
    def memory_sections(self) -> list[MemorySection]:
        """Return the options of the memory, as submitted or stored."""
        texts = self.submitted("memory_options") if self.is_bound else memory_field.texts_of(self.base["memory"])
        return memory_field.build_sections(texts, [str(error) for error in self["memory_options"].errors])

    @property
    def missing_memory(self) -> str:
        """Return the chosen memory if it is not registered, else a blank text."""
        key = self["memory"].value() or ""
        return "" if not key or registry.get(Kind.MEMORY, key) else str(key)

    @property
    def provider_problem(self) -> str:
        """Return why the agent cannot answer, or a blank text if its provider is registered."""
        provider = self["provider"].value()
        missing = find_missing_references({"model": [provider]}) if provider else []
        return missing[0].text if missing else ""

    @property
    def open_sections(self) -> set[str]:
        """Return the ids of the sections in which something is set or invalid."""
        filled = {section for section, names in SECTION_FIELDS.items() if any(map(self.is_filled, names))}
        filled |= {"knowledge"} if any(row.is_selected for row in self.knowledge_bases) else set()
        filled |= {"variants"} if self.variants.is_set else set()
        filled |= {"background-tasks"} if self.background_value != (None, []) else set()
        return filled | ({"mcp-tools"} if any(server.selected_count for server in self.mcp_servers) else set())

    def is_filled(self, name: str) -> bool:
        is_set = self.structured[name].is_set if name in STRUCTURED_FIELDS else bool(self[name].value())
        return is_set or bool(self[name].errors)

    @property
    def fields_with_errors(self) -> list[BoundField]:
        """Return the fields with errors, in the order of the page."""
        return [field for field in self if field.errors]

    @property
    def scorer_rows(self) -> list[dict[str, Any]]:
        """Return the registered scorers, after those of the agent that are not registered."""
        owners = {"", self.agent.owner_id}
        known = {entry.key: entry for entry in registry.selectable(Kind.SCORER) if entry.owner_id in owners}
        value = self["scorers"].value() or {}
        rows = []
        for key in [*(key for key in value if key not in known and is_line(key)), *known]:
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
        for name in ("version_name", "message"):  # in a dialog outside the form element, and not unsaved text
            self.fields[name].widget.attrs |= {"form": "agent-form", "data-of-save": True}
        self.initial = {**self.initial, "head": agent.head_version_id, "live": agent.active_version_id}

    @property
    def fields_url(self) -> str:
        return reverse("agents:fields", args=[self.agent.pk])

    @property
    def option_urls(self) -> dict[str, str]:
        return {name: reverse("agents:options", args=[self.agent.pk, name]) for name in KIND_BY_FIELD}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.publishes and self.provider_problem and "provider" not in self.errors:
            self.add_error("provider", self.provider_problem)
        return cleaned

    @property
    def accepted_versions(self) -> list[str]:
        """Return the head and live versions that the user accepted in a conflict, and whether to publish."""
        return str(self.data.get("keep_on", "")).split()

    @property
    def publishes(self) -> bool:
        return (self.accepted_versions[2:] or [str(self.data.get("publish"))]) == ["yes"]

    @property
    def is_confirmed(self) -> bool:
        """Return whether the user confirmed that versions of others are published."""
        return self.data.get("confirmed") == "yes"

    @property
    def merges(self) -> bool:
        """Return whether the changes are to be merged with those saved since the form was opened."""
        return self.data.get("merge") == "yes"

    def merge_with(self, head: AgentVersion) -> Merge | None:
        """Merge the changes of a valid form with those of a newer head.

        Return None if the version that the form was opened on was pruned.
        """
        opened = find_version_by_id(self.agent, self.cleaned_data.get("head"))
        if opened is None:
            return None
        mine = schema.to_snapshot(self.changed_fields(), opened.snapshot)
        return merge_snapshots(opened.snapshot, mine, head.snapshot)

    def fields_to_save(self, row: Agent) -> dict[str, Any]:
        """Return the fields to write on top of the head of a locked row. Raises ConfigError if a merge is invalid."""
        merge = self.merge_with(get_head_version(row)) if self.merges else None
        return self.changed_fields() if merge is None else schema.validate_partial(merge.snapshot)

    def find_conflict(self, row: Agent, *, publishes: bool) -> str:
        """Return which version conflicts with the form since it was opened: "head", "live" or an empty text."""
        if self.accepted_versions[:2] == [str(row.head_version_id), str(row.active_version_id)]:
            return "" if not self.merges or self.can_merge(row) else "head"
        if not self.pointer_unchanged(row, "head"):
            return "head"
        return "live" if publishes and not self.pointer_unchanged(row, "live") else ""

    def can_merge(self, row: Agent) -> bool:
        merge = self.merge_with(get_head_version(row))
        return merge is not None and not merge.touching

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
