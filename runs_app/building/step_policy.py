"""What changes from one request to the model to the next, as a capability of every agent.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic_ai import ModelResponse, ModelSettings, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition

from runs_app.building.tool_names import tool_name
from runs_app.engine.context import RunDeps
from runs_app.events.recorder import reports_finish_reason
from runs_app.exceptions import RunError, find_run_error
from runs_app.requests.options import most_steps


@dataclass
class Steps(AbstractCapability[RunDeps]):
    """Which tools a request offers and demands, by the options of the run; and what a failed request says.

    `says_why` is whether the model always says why it stopped: what ends without was cut off.
    """

    says_why: bool = False

    def get_model_settings(self) -> Callable[[RunContext[RunDeps]], ModelSettings]:
        return tool_choice

    async def prepare_tools(self, ctx: RunContext[RunDeps], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        active = ctx.deps.options.get("activeTools")
        return tool_defs if active is None else [tool for tool in tool_defs if called(tool) & {*active}]

    async def after_model_request(
        self, ctx: RunContext[RunDeps], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        # Before any tool is called: the model may have been about to say more.
        if self.says_why and not reports_finish_reason(response):
            raise RunError("The model's answer broke off before its end. Ask again.", "cut_off")
        return response

    async def on_model_request_error(
        self, ctx: RunContext[RunDeps], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        raise find_run_error(error) or error


def tool_choice(ctx: RunContext[RunDeps]) -> ModelSettings:
    """A demand holds for the first request, or the run would never end; the last one may only answer."""
    options = ctx.deps.options
    choice: Any = options.get("toolChoice")
    last = most_steps(options)
    if choice == "none" or (ctx.run_step >= last > 1):
        return ModelSettings(tool_choice="none")
    if ctx.run_step > 1 or choice in (None, "auto"):
        return ModelSettings()
    if choice == "required":
        return ModelSettings(tool_choice="required")
    return ModelSettings(tool_choice=[tool_name(choice["toolName"])])


def called(tool: ToolDefinition) -> set[str]:
    """What callers may call a tool: its name, or the key that it has in the agent."""
    return {tool.name, str((tool.metadata or {}).get("key", tool.name))}
