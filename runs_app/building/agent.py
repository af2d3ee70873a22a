"""From a configuration to an agent that runs.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache
from django.conf import settings
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.capabilities import AbstractCapability

from agentcms.cache import SizeLimitedCache
from agents_app.configuration.references import FIELD_KINDS, MissingReference, find_entry, processor_key
from agents_app.registry import Entry
from runs_app.building.processors import InputProcessors, OutputProcessors, Processor
from runs_app.building.step_policy import Steps
from runs_app.building.tools import AgentTool, integration_tool, registered_tool, sub_agent_tool, workflow_tool
from runs_app.display.formats import model_name
from runs_app.engine.context import RunDeps
from runs_app.providers.models import SAY_WHY, model_for, provider_of, settings_of
from runs_app.providers.table import DEMO
from runs_app.requests.options import read_defaults

__all__ = ["BuiltAgent", "build"]

log = logging.getLogger(__name__)

Make = Callable[[str, Entry], AgentTool]

TOOLS_ID = "agent-tools"  # a journal of what a tool did is found by it


@dataclass(frozen=True)
class BuiltAgent:
    """An agent that runs, with what its caller must know of it."""

    agent: Any  # pydantic_ai.Agent[Running, str]: instructions, model, tools and capabilities are inside
    options: dict[str, Any]  # its default options
    warnings: tuple[MissingReference, ...]
    is_demo: bool
    model_name: str  # provider/name


def build(configuration: Mapping[str, Any], *, known_agents: Mapping[str, str] | None = None) -> BuiltAgent:
    """The agent that a configuration under wire names describes. Raises CannotBuild.

    `known_agents` are the stored agents that it may ask, by key, with what each says of itself. What else it names and
    nothing registered is left out and warned of.
    """
    return AgentBuilder(configuration, known_agents or {}).build()


@dataclass
class AgentBuilder:
    """One agent on its way, with the warnings so far."""

    configuration: Mapping[str, Any]
    known_agents: Mapping[str, str]
    warnings: list[MissingReference] = field(default_factory=list)

    def build(self) -> BuiltAgent:
        choice = self.configuration.get("model")
        choice = choice if isinstance(choice, dict) else {}
        model = model_for(choice)
        options, issues = read_defaults(self.configuration.get("defaultOptions") or {})
        for issue in issues:
            self.warn("defaultOptions", issue.field, f"The option {issue.field} is left out: {issue.message}")
        agent = Agent(
            model,
            name=str(self.configuration.get("name") or "agent"),
            instructions=self.configuration.get("instructions") or None,
            deps_type=RunDeps,
            model_settings=self.model_settings(choice),
            toolsets=[FunctionToolset([*self.tools()], id=TOOLS_ID)],
            capabilities=[*self.capabilities()],
            # The steps bound how often a model may get its arguments wrong.
            retries={"tools": settings.RUN_MAX_STEPS, "output": 1},
        )
        self.look_for_scorers()
        is_demo = provider_of(choice).dialect == DEMO
        return BuiltAgent(agent, options, tuple(self.warnings), is_demo, model_name(choice))

    def model_settings(self, choice: Mapping[str, Any]) -> Any:
        found, unknown = settings_of(choice)
        for name in unknown:
            self.warn("model", name, f"The model's setting '{name}' is not known, or its value cannot be used.")
        return found

    def tools(self) -> Iterator[AgentTool]:
        """Every tool of the agent, in the order of its configuration; a name means one of them."""
        taken: dict[str, str] = {}
        for place, key, tool in self.offered():
            if other := taken.get(tool.name):
                self.warn(place, key, f"'{key}' is left out: the model would call it as it calls '{other}'.")
            else:
                taken[tool.name] = key
                yield tool

    def offered(self) -> Iterator[tuple[str, str, AgentTool]]:
        yield from self.build_registered("tools", registered_tool)
        yield from self.build_registered("workflows", workflow_tool)
        for key in self.configuration.get("agents") or []:
            entry = find_entry(FIELD_KINDS["agents"], key)
            if entry is not None or key in self.known_agents:
                yield "agents", key, sub_agent_tool(key, entry.description if entry else self.known_agents[key])
            else:
                self.warn_missing("agents", key)
        yield from self.build_registered("integrationTools", integration_tool)

    def build_registered(self, field: str, make: Make) -> Iterator[tuple[str, str, AgentTool]]:
        for key, entry in self.found(field, self.configuration.get(field) or []):
            try:
                yield field, key, cached_tool(make, key, entry)
            except Exception as error:  # what code registers may be anything
                log.warning("%s '%s' cannot be offered to a model.", entry.kind, key, exc_info=error)
                self.warn(field, key, f"The {entry.kind} '{key}' cannot be offered to a model.")

    def capabilities(self) -> Iterator[AbstractCapability[RunDeps]]:
        """Memory in, processors in, the model, processors out, memory out: the first is the outermost."""
        memory = self.configuration.get("memory")
        for key, entry in self.found("memory", [memory] if memory else []):
            if entry.target is None:
                self.warn(
                    "memory", key, f"The memory '{key}' cannot remember anything: nothing that runs is its target."
                )
            else:
                yield entry.target()
        if taken := self.processors("inputProcessors"):
            yield InputProcessors(taken)
        if taken := self.processors("outputProcessors"):
            yield OutputProcessors(taken)
        yield Steps(says_why=provider_of(self.configuration["model"]).dialect in SAY_WHY)

    def processors(self, field: str) -> tuple[Processor, ...]:
        """The processors of one side, in order."""
        chosen = [(processor_key(each), each) for each in self.configuration.get(field) or []]
        return tuple(
            Processor.of(entry, choice) for key, choice in chosen for _, entry in self.found(field, [str(key)])
        )

    def look_for_scorers(self) -> None:
        for _ in self.found("scorers", self.configuration.get("scorers") or {}):
            pass  # they run after the answer; what is missing is warned of now

    def found(self, field: str, keys: Any) -> Iterator[tuple[str, Entry]]:
        """The entries of those keys that something registered."""
        for key in keys:
            entry = find_entry(FIELD_KINDS[field], key)
            if entry is not None:
                yield key, entry
            else:
                self.warn_missing(field, key)

    def warn_missing(self, field: str, key: str) -> None:
        self.warn(field, key, f"No {FIELD_KINDS[field].value} is registered as '{key}'.")

    def warn(self, field: str, key: str, message: str) -> None:
        log.warning("Agent '%s' runs with less than it names. %s", self.configuration.get("name", ""), message)
        self.warnings.append(MissingReference(field, key, message))


MAX_CACHED_TOOLS = 1000  # per process

_tools: SizeLimitedCache[tuple[Make, str], tuple[Entry, AgentTool]] = SizeLimitedCache(LRUCache(MAX_CACHED_TOOLS))


def cached_tool(make: Make, key: str, entry: Entry) -> AgentTool:
    """Return the tool of an entry, which is built once because reading a function's signature is slow."""
    cached_entry, tool = _tools.get_or_create((make, key), lambda: (entry, make(key, entry)))
    if cached_entry is not entry:  # registered anew under the same key
        tool = make(key, entry)
        _tools.set((make, key), (entry, tool))
    return tool
