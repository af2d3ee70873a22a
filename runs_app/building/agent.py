"""Conversion of a configuration into an agent of pydantic-ai.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from cachetools import LRUCache
from django.conf import settings
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests

from agentcms.cache import SizeLimitedCache
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.names import to_wire
from agents_app.configuration.background_tasks import BACKGROUND_TASKS
from agents_app.configuration.knowledge import KNOWLEDGE, usable_bases
from agents_app.configuration.mcp_clients import MCP_CLIENTS, usable_entries
from agents_app.configuration.memory.options import options_without_effect, parse_memory_options
from agents_app.configuration.references import (
    FIELD_KINDS,
    MissingReference,
    find_entry,
    missing_reference_message,
    processor_key,
)
from agents_app.configuration.variables import find_placeholders
from agents_app.registry import Entry, Kind, registry
from runs_app.building.background_tools import BackgroundOverrides, with_background
from runs_app.building.processors import InputProcessors, OutputProcessors, Processor
from runs_app.building.step_policy import StepPolicy, tool_aliases, unknown_tool_message
from runs_app.building.tools import AgentTool, integration_tool, registered_tool, sub_agent_tool, workflow_tool
from runs_app.display.formats import model_name
from runs_app.engine.context import RunDeps
from runs_app.engine.journaling.capability import Journaled
from runs_app.memory.capabilities import memory_capabilities, tools_of_memory
from runs_app.memory.registered_memories import registered_memory
from runs_app.providers.cached_providers import DEMO_DIALECT
from runs_app.providers.current_model import current_model
from runs_app.providers.model_settings import parse_settings
from runs_app.providers.models import DIALECTS_WITH_FINISH_REASON, get_model_provider
from runs_app.providers.schema_cache import accepts_schema
from runs_app.requests.options import parse_default_options
from runs_app.response_cache.capability import ResponseCache
from runs_app.response_cache.key import model_identity
from runs_app.response_cache.options import PROCESSOR_KEY, parse_agent_options
from runs_app.thread_signals.inbox import Inbox
from runs_app.thread_signals.turns_in_requests import Turns
from runs_app.tracing import run_spans

__all__ = ["BuiltAgent", "build_agent"]

log = logging.getLogger(__name__)

ToolFactory = Callable[[str, Entry], AgentTool]

SETTING_IGNORED_MESSAGE = "The model setting '{name}' is ignored: its name or value is invalid for this provider."
SETTING_UNSUPPORTED_MESSAGE = "The model setting '{name}' is ignored: this provider has no such setting. Remove it."
SCHEMA_MESSAGE = "'{key}' is left out: its schema is not valid for this model. Tell those who run its server."
# Finds the entries of tools from outside in the value of a field.
OUTSIDE_TOOLS = {MCP_CLIENTS: usable_entries, KNOWLEDGE: usable_bases}
TOOLSET_ID = "agent-tools"  # durable runs require one


@dataclass(frozen=True)
class BuiltAgent:
    """An agent of pydantic-ai with the data that its caller needs."""

    agent: Any  # pydantic_ai.Agent, whose overloads do not accept options that are built at run time
    options: JSONObject  # its default options
    warnings: tuple[MissingReference, ...]
    is_demo: bool
    model_name: str  # provider/name
    # What the events of calls say of tools from outside, by the name of the tool.
    tool_origins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tools: Mapping[str, AgentTool] = field(default_factory=dict)  # by name


def build_agent(
    configuration: JSONMapping,
    *,
    known_agents: Mapping[str, str] | None = None,
    archived_agents: Collection[str] = (),
    owner_id: str = "",
) -> BuiltAgent:
    """Build the agent of a configuration, which has wire names. Raise AgentBuildError.

    `known_agents` are the descriptions of the stored agents that it may use, by key. Other unregistered references
    are left out, with a warning, which says of `archived_agents` that they are archived.
    """
    return AgentBuilder(configuration, known_agents or {}, archived_agents, owner_id).build()


@dataclass
class AgentBuilder:
    """Builder of one agent, with the warnings so far."""

    configuration: JSONMapping
    known_agents: Mapping[str, str]
    archived_agents: Collection[str]
    owner_id: str = ""  # who may use tools that are not shared
    warnings: list[MissingReference] = field(default_factory=list)
    model: Any = None  # of pydantic-ai, once `build_agent` has made it

    def build(self) -> BuiltAgent:
        choice = self.configuration.get("model")
        choice = choice if isinstance(choice, dict) else {}
        self.model = current_model(choice)
        options, issues = parse_default_options(self.configuration.get("defaultOptions") or {})
        for issue in issues:
            self.warn("defaultOptions", issue.field, f"The option {issue.field} is ignored: {issue.message}")
        tools = [*self.tools()]
        agent = Agent(
            self.model,
            name=str(self.configuration.get("name") or "agent"),
            instructions=self.instructions(),
            deps_type=RunDeps,
            model_settings=self.model_settings(choice),
            toolsets=[FunctionToolset(tools, id=TOOLSET_ID)],
            output_type=[str, DeferredToolRequests],
            capabilities=(capabilities := [*self.capabilities()]),
            # The limit of steps also limits how often a model may send invalid arguments.
            retries={"tools": settings.RUN_MAX_STEPS, "output": 1},
        )
        self.check_names(tools)
        is_demo = get_model_provider(choice).dialect == DEMO_DIALECT
        origins = {tool.name: tool.metadata["origin"] for tool in tools if tool.metadata and "origin" in tool.metadata}
        tools_by_name = {tool.name: tool for tool in (*tools, *tools_of_memory(capabilities))}
        return BuiltAgent(agent, options, tuple(self.warnings), is_demo, model_name(choice), origins, tools_by_name)

    def instructions(self) -> str | Callable[[RunContext[RunDeps]], str] | None:
        """Return the instructions, or a function if they have variables: the agent is cached, their values are not."""
        text: str | None = self.configuration.get("instructions") or None
        if text is None or not any(find_placeholders(text)):
            return text
        template = text

        def run_instructions(ctx: RunContext[RunDeps]) -> str:
            return template if ctx.deps.instructions is None else ctx.deps.instructions

        return run_instructions

    def model_settings(self, choice: JSONMapping) -> ModelSettings:
        parsed, ignored = parse_settings(choice, get_model_provider(choice))
        for name in ignored:
            self.warn("model", name, SETTING_IGNORED_MESSAGE.format(name=name))
        model = self.model.wrapped if isinstance(self.model, WrapperModel) else self.model
        for setting in sorted(model.unsupported_settings & parsed.keys()):
            del parsed[setting]
            name = to_wire(setting)
            self.warn("model", name, SETTING_UNSUPPORTED_MESSAGE.format(name=name))
        return cast(ModelSettings, parsed)

    def tools(self) -> Iterator[AgentTool]:
        """Yield the tools of the agent in the order of its configuration. Names are unique."""
        key_by_name: dict[str, str] = {}
        for path, key, foreground_tool in self.configured_tools():
            entry = find_entry(FIELD_KINDS[path], key) if path == "tools" else None
            tool = with_background(foreground_tool, self.configuration.get(BACKGROUND_TASKS), entry)
            if other := key_by_name.get(tool.name):
                self.warn(path, key, f"'{key}' is left out: it has the same tool name as '{other}'.")
            else:
                key_by_name[tool.name] = key
                yield tool

    def configured_tools(self) -> Iterator[tuple[str, str, AgentTool]]:
        """Yield each tool with its field and key."""
        yield from self.build_registered("tools", registered_tool)
        yield from self.build_registered("workflows", workflow_tool)
        for key in self.configuration.get("agents") or []:
            entry = find_entry(FIELD_KINDS["agents"], key)
            if entry is not None and entry.unavailable_reason:
                self.warn("agents", key, entry.unavailable_reason)
            elif entry is not None or key in self.known_agents:
                description = entry.description if entry else self.known_agents[key]
                yield "agents", key, sub_agent_tool(key, description, entry)
            else:
                self.warn_missing("agents", key)
        yield from self.build_registered("integrationTools", integration_tool)
        yield from self.outside_tools()

    def outside_tools(self) -> Iterator[tuple[str, str, AgentTool]]:
        """Yield the tools from outside of this application. Add a warning for each that cannot be used now."""
        for path, find_entries in OUTSIDE_TOOLS.items():
            for key, entry in find_entries(self.configuration.get(path), self.owner_id):
                if isinstance(entry, str):
                    self.warn(path, key, entry)
                elif entry.make is not None:
                    tool = cast(AgentTool, entry.make(key, entry))
                    if accepts_schema(self.model, tool.tool_def):
                        yield path, key, tool
                    else:
                        self.warn(path, key, SCHEMA_MESSAGE.format(key=key))

    def build_registered(self, field: str, factory: ToolFactory) -> Iterator[tuple[str, str, AgentTool]]:
        for key, entry in self.registered_entries(field, self.configuration.get(field) or []):
            try:
                yield field, key, cached_tool(entry.make or factory, key, entry)
            except Exception as error:  # registered objects may be of any type
                log.warning("%s '%s' cannot be used as a tool.", entry.kind, key, exc_info=error)
                self.warn(field, key, f"The {entry.kind} '{key}' cannot be used as a tool.")

    def capabilities(self) -> Iterator[AbstractCapability[RunDeps]]:
        """Yield the capabilities of the agent. The first is the outermost."""
        yield from run_spans.instrumentation()
        yield from self.memory()
        yield Inbox()
        if processors := self.processors("inputProcessors"):
            yield InputProcessors(processors)
        yield Turns()  # after the input processors, which are given the words without the markup of their author
        if processors := self.processors("outputProcessors"):
            yield OutputProcessors(processors)
        dialect = get_model_provider(self.configuration["model"]).dialect
        yield StepPolicy(requires_finish_reason=dialect in DIALECTS_WITH_FINISH_REASON)
        yield BackgroundOverrides()
        yield Journaled()
        yield from self.response_cache()  # the innermost: output processors also change stored answers

    def memory(self) -> Iterator[AbstractCapability[RunDeps]]:
        """Yield the capabilities of a registered memory, or of the options of the agent."""
        memory = self.configuration.get("memory")
        if isinstance(memory, dict):
            for path, message in options_without_effect(memory):
                self.warn("memory", path.rpartition(".")[2], message)
            if options := parse_memory_options(memory):
                yield from memory_capabilities(options, self.configuration["model"])
            else:
                self.warn("memory", "options", "The memory is ignored: its options are invalid.")
            return
        for key, entry in self.registered_entries("memory", [memory] if memory else []):
            if entry.target is None:
                self.warn("memory", key, f"The memory '{key}' is ignored: it was registered without a target.")
            else:
                yield registered_memory(entry)

    def response_cache(self) -> Iterator[ResponseCache]:
        """Yield the response cache if it is an input processor. The demo model with a delay is always asked."""
        choices = self.configuration.get("inputProcessors") or []
        choice = next((choice for choice in choices if processor_key(choice) == PROCESSOR_KEY), None)
        if choice is None:
            return
        options, ignored = parse_agent_options(choice)
        for name in ignored:
            message = f"The argument {name} of '{PROCESSOR_KEY}' is ignored: its value is invalid."
            self.warn("inputProcessors", PROCESSOR_KEY, message)
        model = self.configuration["model"]
        provider = get_model_provider(model)
        if not (provider.dialect == DEMO_DIALECT and model.get("delay")):
            requires_finish_reason = provider.dialect in DIALECTS_WITH_FINISH_REASON
            yield ResponseCache(options, model_identity(provider, model), requires_finish_reason)

    def processors(self, field: str) -> tuple[Processor, ...]:
        """Return the input or output processors in order."""
        return tuple(
            Processor.from_entry(entry, choice)
            for choice in self.configuration.get(field) or []
            for _, entry in self.registered_entries(field, [str(processor_key(choice))])
            if entry.key != PROCESSOR_KEY
        )

    def check_names(self, tools: Collection[AgentTool]) -> None:
        """Add the warnings of names that the agent does not need to be built."""
        self.check_background(tools)
        self.check_scorers()

    def check_background(self, tools: Collection[AgentTool]) -> None:
        """Add the warnings of names in `backgroundTasks` that belong to no tool of the agent."""
        choices = self.configuration.get(BACKGROUND_TASKS)
        named = choices.get("tools") if isinstance(choices, dict) else None
        known = set().union(*(tool_aliases(tool.tool_def) for tool in tools))
        missing = {warning.key for warning in self.warnings}  # tools that are left out: they have a warning
        for name in [*named] if isinstance(named, dict) else []:
            if name not in known | missing:
                self.warn(BACKGROUND_TASKS, name, unknown_tool_message(BACKGROUND_TASKS, name, known))

    def check_scorers(self) -> None:
        """Add the warnings of missing scorers. Scorers run after the answer, in a job."""
        for key in self.configuration.get("scorers") or {}:
            if registry.find_usable(Kind.SCORER, key, self.owner_id) is None:
                self.warn_missing("scorers", key)

    def registered_entries(self, field: str, keys: Any) -> Iterator[tuple[str, Entry]]:
        """Yield the registered entries of these keys. Add a warning for each of the others."""
        for key in keys:
            entry = find_entry(FIELD_KINDS[field], key)
            if entry is not None and entry.unavailable_reason:
                self.warn(field, key, entry.unavailable_reason)
            elif entry is not None:
                yield key, entry
            else:
                self.warn_missing(field, key)

    def warn_missing(self, field: str, key: str) -> None:
        self.warn(field, key, missing_reference_message(field, key, self.archived_agents))

    def warn(self, field: str, key: str, message: str) -> None:
        log.warning("Agent '%s': %s", self.configuration.get("name", ""), message)
        self.warnings.append(MissingReference(field, key, message))


MAX_CACHED_TOOLS = 1000  # per process

_tools: SizeLimitedCache[tuple[ToolFactory, str], tuple[Entry, AgentTool]] = SizeLimitedCache(
    LRUCache(MAX_CACHED_TOOLS)
)


def cached_tool(factory: ToolFactory, key: str, entry: Entry) -> AgentTool:
    """Return the tool of an entry. It is cached because inspecting signatures takes most of the building time."""
    cached_entry, tool = _tools.get_or_create((factory, key), lambda: (entry, factory(key, entry)))
    if cached_entry is not entry:  # registered again under the same key
        tool = factory(key, entry)
        _tools.set((factory, key), (entry, tool))
    return tool
