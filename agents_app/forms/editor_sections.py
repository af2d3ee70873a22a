"""The parts of the editor: pickers, rows of tools, and the sections that are open."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from django import forms
from django.forms import BoundField
from django.urls import reverse

from access_app.caller import Caller
from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.references import find_missing_references
from agents_app.configuration.variables import Variable, variables_of
from agents_app.forms.field_values import (
    MODEL_SETTINGS,
    sampling_inputs,
)
from agents_app.forms.memory.inputs import texts_of
from agents_app.forms.memory.sections import MemorySection, build_memory_sections
from agents_app.forms.model_fields import MODEL_MEMBERS, OPTION_MEMBERS
from agents_app.forms.objects.field import StructuredValue, stored_value
from agents_app.forms.objects.members import InputError, is_line, texts_by_target
from agents_app.forms.pickers import KIND_BY_FIELD, OptionSource, Picker, build_picker
from agents_app.forms.tools.background import (
    BACKGROUND_MODES,
    MAX_TASK_ROWS,
    USES,
    TaskToolRow,
    background_tool_rows,
    compose_background,
    mode_for_all,
)
from agents_app.forms.tools.knowledge import BaseRow, build_base_list, compose_knowledge
from agents_app.forms.tools.listed_rows import ListedRows
from agents_app.forms.tools.mcp import ServerRows, build_tool_list, compose_selection
from agents_app.forms.variants.inputs import VariantInputs
from agents_app.models import Agent
from agents_app.models.querysets import usable_owners
from agents_app.registry import Entry, Kind, registry
from runs_app.providers.model_settings import known_setting_names
from runs_app.requests.options import known_option_names

STRUCTURED_FIELDS = (
    "request_context_schema",
    "model_rest",
    "input_processors",
    "output_processors",
    "default_options",
    "metadata",
)
KEY_LIST_FIELDS = ("tools", "workflows", "agents", "integration_tools")
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


class EditorSections(forms.Form):
    """The properties of the editor's form for its templates.

    `base` is the configuration with which the form was opened.
    """

    base: JSONObject
    user: Caller
    agent: Agent
    background_modes, background_uses = BACKGROUND_MODES, USES
    show = ""  # a field of STRUCTURED_FIELDS and the view to change to, such as "metadata:json"

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
        """Return the length of the instructions, in the format of static/js/forms/errors_and_counters.js."""
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
    def knowledge_bases(self) -> ListedRows[BaseRow]:
        """Return the knowledge bases with the options of the agent, as submitted or stored."""
        # A page that an older release rendered has none of these inputs.
        is_sent = self.is_bound and "knowledge" in self.data
        value = compose_knowledge(self.data, self.base["knowledge"]) if is_sent else self.base["knowledge"]
        return build_base_list(value, self.agent.owner_id, self.data.get("knowledge-search", ""))

    @cached_property
    def mcp_tools(self) -> ListedRows[ServerRows]:
        """Return the tools of MCP servers, as submitted or stored."""
        is_sent = self.is_bound and "mcp_clients" in self.data
        value = compose_selection(self.data, self.base["mcp_clients"]) if is_sent else self.base["mcp_clients"]
        return build_tool_list(value, self.agent.owner_id, self.data.get("mcp-search", ""))

    @property
    def background_rows(self) -> list[TaskToolRow]:
        """Return the rows of tools that the page shows. What is stored for the others stays as it is."""
        return self.all_background_rows[:MAX_TASK_ROWS]

    @property
    def hidden_background_rows(self) -> int:
        return len(self.all_background_rows) - len(self.background_rows)

    @cached_property
    def all_background_rows(self) -> list[TaskToolRow]:
        """Return the tools of the agent with what it says of their background tasks, as submitted or stored."""
        keys = [key for name in ("tools", "integration_tools") for key in self.selected_keys(name)]
        # By the names that models have for them, as in `runs_app.building.tool_names`.
        keys += [f"workflow-{key}" for key in self.selected_keys("workflows")]
        keys += [f"agent-{key}" for key in self.selected_keys("agents")]
        keys += [tool.key for server in self.mcp_tools.rows for tool in server.tools if tool.is_selected]
        errors = self["background_inputs"].errors.as_data()
        return background_tool_rows(self.background_value[0], keys, self.data if self.is_bound else {}, errors)

    @property
    def background_value(self) -> tuple[Any, list[InputError]]:
        """Return the background tasks as submitted or stored, and the errors of what was submitted."""
        if self.is_bound and "background_tasks" in self.data:
            return compose_background(self.data, self.base["background_tasks"])
        return self.base["background_tasks"], []

    @property
    def background_mode(self) -> str:
        return mode_for_all(self.background_value[0])

    @cached_property
    def variants(self) -> VariantInputs:
        """Return the variants, as submitted or stored."""
        if self.is_bound and "conditional" in self.data:
            return VariantInputs.submitted(self.data, self.options("tools"))
        return VariantInputs.stored(self.base["conditional"], self.base["context_keys"], self.options("tools"))

    @property
    def memory_sections(self) -> list[MemorySection]:
        """Return the options of the memory, as submitted or stored."""
        texts = self.submitted("memory_options") if self.is_bound else texts_of(self.base["memory"])
        return build_memory_sections(texts, self["memory_options"].errors.as_data())

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
        filled |= {"knowledge"} if any(row.is_selected for row in self.knowledge_bases.rows) else set()
        filled |= {"variants"} if self.variants.is_set else set()
        filled |= {"background-tasks"} if self.background_value != (None, []) else set()
        return filled | ({"mcp-tools"} if any(server.selected_count for server in self.mcp_tools.rows) else set())

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
        known = {entry.key: entry for entry in registry.selectable(Kind.SCORER, usable_owners(self.agent.owner_id))}
        value = self["scorers"].value() or {}
        errors = texts_by_target(self["scorers"].errors.as_data())
        rows = []
        # Without keys that a browser would change: `restore_scorers` adds the stored ones.
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
                    "error": errors.get(f"scorers-{key}-amount:0", ""),
                }
            )
        return rows

    @property
    def providers(self) -> Sequence[Entry]:
        return registry.selectable(Kind.MODEL_PROVIDER)

    @property
    def processors(self) -> Sequence[Entry]:
        return registry.entries(Kind.PROCESSOR)
