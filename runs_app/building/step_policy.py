"""The policy for each request to the model, as a capability of every agent.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import Agent, ModelResponse, ModelSettings, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.result import FinalResult
from pydantic_ai.tools import ToolDefinition
from pydantic_graph import End

from agentcms.wire.names import printable_key
from agentcms.wire.unknown_names import MAX_UNKNOWN_NAMES, find_nearest_name
from agents_app.configuration.references import MissingReference
from agents_app.registry import Kind
from runs_app.building.call_ids import with_unique_call_ids
from runs_app.building.structured_output import reject_unfit_answer
from runs_app.building.tool_names import MAX_TOOL_NAME_LENGTH, tool_name
from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import keep_loop_running, run_briefly
from runs_app.events.recorder import reports_finish_reason
from runs_app.exceptions import RunError
from runs_app.memory.last_messages import messages_since_prompt
from runs_app.requests.options import max_steps
from runs_app.stop_conditions import STOP_WHEN, FinishedCall, FinishedStep, find_stop_condition

log = logging.getLogger(__name__)


@dataclass
class StepPolicy(AbstractCapability[RunDeps]):
    """Capability that limits tools and steps by the options of the run, and checks that answers are complete and fit.

    It gives each tool call an ID of its own.
    With `requires_finish_reason`, an answer without a finish reason counts as interrupted.
    """

    requires_finish_reason: bool = False

    def get_model_settings(self) -> Callable[[RunContext[RunDeps]], ModelSettings]:
        return tool_choice_settings

    async def prepare_tools(self, ctx: RunContext[RunDeps], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        active = ctx.deps.options.get("activeTools")
        tools = tool_defs if active is None else [tool for tool in tool_defs if tool_aliases(tool) & {*active}]
        if ctx.deps.steps_before + ctx.run_step <= 1:
            ctx.deps.warnings += unknown_tools(ctx.deps, tool_defs)
            reject_impossible_choice(ctx.deps.options.get("toolChoice"), tools)
        if ctx.deps.is_experiment:
            return tools  # `ExperimentTools` declines the calls, unless a mock answers
        return [replace(tool, kind="unapproved") if needs_approval(tool, ctx.deps) else tool for tool in tools]

    async def after_model_request(
        self, ctx: RunContext[RunDeps], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        # Checked before any tool is called, because the arguments may be incomplete.
        if self.requires_finish_reason and not reports_finish_reason(response):
            raise RunError("The answer of the model was cut off. Try again.", "cut_off")
        return with_unique_call_ids(response, request_context.messages, ctx.deps)

    async def after_output_validate(
        self, ctx: RunContext[RunDeps], *, output_context: OutputContext, output: Any
    ) -> Any:
        await reject_unfit_answer(ctx, output)
        return output

    async def after_node_run(self, ctx: RunContext[RunDeps], *, node: Any, result: Any) -> Any:
        """End the run in place of its next request if its stop condition is met."""
        name = ctx.deps.options.get(STOP_WHEN)
        if not (name and Agent.is_call_tools_node(node) and Agent.is_model_request_node(result)):
            return result
        steps = finished_steps([*messages_since_prompt(ctx.messages), result.request])
        if not await is_met(name, steps):
            return result
        ctx.deps.is_stopped = True
        ctx.messages.append(result.request)  # the results of the last calls, for the memory of the conversation
        return End(FinalResult(steps[-1].text))


def finished_steps(messages: Sequence[ModelMessage]) -> list[FinishedStep]:
    """Return the answers of the model in these messages with the results of their calls."""
    parts = [part for message in messages for part in message.parts]
    results = {part.tool_call_id: part.content for part in parts if isinstance(part, ToolReturnPart)}
    return [
        FinishedStep(
            response.text or "",
            tuple(
                FinishedCall(call.tool_name, call.args_as_dict(), results.get(call.tool_call_id))
                for call in response.tool_calls
            ),
            response.usage.total_tokens,
        )
        for response in messages
        if isinstance(response, ModelResponse)
    ]


async def is_met(name: str, steps: list[FinishedStep]) -> bool:
    """Return whether a run ends after these steps. A condition that fails ends it too: nothing else would."""
    condition = find_stop_condition(name)
    if condition is None:
        log.warning("The stop condition '%s' is no longer registered, so it ends no run.", name)
        return False
    try:
        if inspect.iscoroutinefunction(condition):
            return bool(await keep_loop_running(condition(steps)))
        return bool(await run_briefly(condition, steps))
    except Exception:
        log.exception("The stop condition '%s' failed, so the run ends.", name)
        return True


def tool_choice_settings(ctx: RunContext[RunDeps]) -> ModelSettings:
    """Return the tool choice of a request.

    A required call only applies to the first request, or the run would never end. The last request may call no tools,
    unless it is the only one.
    """
    options = ctx.deps.options
    choice: Any = options.get("toolChoice")
    step, last_step = ctx.deps.steps_before + ctx.run_step, max_steps(options)
    if choice == "none" or (step >= last_step > 1):
        return ModelSettings(tool_choice="none")
    if step > 1 or choice in (None, "auto"):
        return ModelSettings()
    if choice == "required":
        return ModelSettings(tool_choice="required")
    return ModelSettings(tool_choice=[tool_name(choice["toolName"])])


def reject_impossible_choice(choice: Any, tools: Sequence[ToolDefinition]) -> None:
    """Raise RunError if the model must call a tool that it does not have."""
    if choice == "required" and not tools:
        raise RunError("toolChoice requires a call of a tool, but this run has no tools. Use auto.", "no_tools")
    if isinstance(choice, dict) and tool_name(choice["toolName"]) not in {tool.name for tool in tools}:
        names = ", ".join(sorted(tool.name for tool in tools)) or "none"
        name = choice["toolName"][:MAX_TOOL_NAME_LENGTH]
        raise RunError(f"toolChoice names the tool {name}, which this run does not have. It has: {names}.", "no_tool")


def unknown_tools(deps: RunDeps, tools: Sequence[ToolDefinition]) -> list[MissingReference]:
    """Return the names in the options of a run that name none of its tools.

    `requireToolApproval` also reaches the sub-agents, whose tools are not known here.
    """
    reaches_others = deps.root_id not in (None, deps.run_id) or any(is_sub_agent(tool) for tool in tools)
    options = ("activeTools",) if reaches_others else ("activeTools", "requireToolApproval")
    known = set().union(*map(tool_aliases, tools))
    return [
        MissingReference(option, printable_key(name), unknown_tool_message(option, name, known))
        for option in options
        if isinstance(names := deps.options.get(option), list)
        for name in [name for name in names if name not in known][:MAX_UNKNOWN_NAMES]
    ]


def unknown_tool_message(option: str, name: str, known: Collection[str]) -> str:
    nearest = find_nearest_name(name, known)
    hint = f"Did you mean {nearest}?" if nearest else "Use the key of a tool."
    return f"{option} names the tool {printable_key(name)}, which this run does not have. {hint}"


def is_sub_agent(tool: ToolDefinition) -> bool:
    return (tool.metadata or {}).get("kind") == Kind.AGENT.value


def needs_approval(tool: ToolDefinition, deps: RunDeps) -> bool:
    """Return whether a person must approve every call of a tool in this run.

    The predicate of a tool is asked when it is called.
    """
    if tool.kind != "function":
        return False  # the API client executes it
    required = deps.options.get("requireToolApproval")
    if required is True or (isinstance(required, list) and tool_aliases(tool) & {*required}):
        return True
    return (tool.metadata or {}).get("requires_approval") is True


def tool_aliases(tool: ToolDefinition) -> set[str]:
    """Return the names of a tool in API options: its name and its key in the configuration."""
    return {tool.name, str((tool.metadata or {}).get("key", tool.name))}
