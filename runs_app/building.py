"""From a configuration to an agent that runs.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from pydantic_ai import Agent, FunctionToolset, RunContext, Tool

from agents_app.references import Warning, find, references, warnings
from agents_app.registry import Kind
from runs_app.context import Running
from runs_app.demo_model import NAMES, demo_model
from runs_app.options import read_options

log = logging.getLogger(__name__)


class CannotBuild(ValidationError):
    """A configuration that no agent can be made of; `code` says why and the message what to do."""


@dataclass(frozen=True)
class Built:
    """An agent that runs, with what its caller must know of it."""

    agent: Any  # pydantic_ai.Agent[Running, str]: instructions, model, tools and capabilities are inside
    options: dict[str, Any]  # its default options
    warnings: tuple[Warning, ...]
    is_demo: bool
    model_name: str  # provider/name


def build(configuration: Mapping[str, Any], *, known_agents: Iterable[str] = ()) -> Built:
    """The agent that a configuration under wire names describes. Raises CannotBuild."""
    model = configuration["model"]
    missing = tuple(warnings(references(configuration), known_agents))
    for warning in missing:
        log.warning("%s: %s", configuration.get("name", ""), warning.message)
    return Built(
        agent=Agent(
            _model(model),
            instructions=configuration.get("instructions") or None,
            deps_type=Running,
            toolsets=[_toolset(configuration, {(each.field, each.key) for each in missing})],
        ),
        options=read_options(configuration.get("defaultOptions") or {}),
        warnings=missing,
        is_demo=model["provider"] == "demo",
        model_name=f"{model['provider']}/{model['name']}",
    )


def _model(choice: Mapping[str, Any]) -> Any:
    if choice["provider"] != "demo" or choice["name"] not in NAMES:
        raise CannotBuild(f"No provider '{choice['provider']}' offers '{choice['name']}'.", code="provider_unknown")
    return demo_model(choice["name"], choice)


def _toolset(configuration: Mapping[str, Any], missing: set[tuple[str, str]]) -> FunctionToolset[Running]:
    tools: list[Tool[Running]] = []
    for key in configuration.get("tools") or []:
        if ("tools", key) not in missing:
            entry: Any = find(Kind.TOOL, key)
            tools.append(Tool(entry.target, name=key, description=entry.description))
    tools += [_sub_agent(key) for key in configuration.get("agents") or [] if ("agents", key) not in missing]
    return FunctionToolset(tools, id="agent-tools")


def _sub_agent(key: str) -> Tool[Running]:
    async def ask(context: RunContext[Running], prompt: str) -> str:
        return await context.deps.ask_sub_agent(key, prompt, context.tool_call_id or "")

    return Tool(ask, name=f"agent-{key}", description=f"Asks the agent '{key}'.")
