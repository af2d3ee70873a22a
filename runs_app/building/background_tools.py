"""Tools whose calls may run in the background: their schema, and the dispatch of a call.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from pydantic_ai import CallDeferred, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.tools import ToolDefinition

from agentcms.tracing import spans
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.background_tasks import FOREGROUND, OVERRIDE, BackgroundRules, find_rules
from agents_app.registry import Entry
from runs_app.approvals.lookup import TASK_ID
from runs_app.background.dispatch import BackgroundCall, find_or_create_task
from runs_app.building.tools import AgentTool, ask_person, report_failures_to_model
from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import run_db
from runs_app.events.stream_chunks import to_storable_json
from runs_app.models import BackgroundTask

OVERRIDE_SCHEMA = {
    "type": "object",
    "description": (
        "How this call runs. Omit it for the usual way. 'deferred': you get the result later, as a message. "
        "'awaited': you get the result as usual, however long it takes. 'foreground': a quick call."
    ),
    "properties": {
        "enabled": {"type": "boolean"},
        "disposition": {"enum": ["foreground", "deferred", "awaited"]},
        "timeoutMs": {"type": "integer", "minimum": 1},
        "maxRetries": {"type": "integer", "minimum": 0},
    },
}
ACKNOWLEDGEMENT = (
    "The tool works in the background. Its result is delivered to this conversation as soon as it is there. "
    "Do not call the tool again for it."
)

MAX_CALLS_PER_ANSWER = 10_000  # so that the numbers of two answers do not overlap

ToolFunction = Callable[..., Awaitable[Any]]


def with_background(tool: AgentTool, config: object, entry: Entry | None) -> AgentTool:
    """Return a tool whose calls run in the background if the agent and the tool say so, or the tool itself.

    `config` is the field `backgroundTasks` of the agent. A tool that asks a person for data stays in the foreground.
    """
    key = str((tool.metadata or {}).get("key", tool.name))
    says, is_ordered = (entry.background, entry.ordered) if entry is not None else (None, False)
    rules = find_rules(config, (key, tool.name), says, tool_is_ordered=is_ordered)
    if rules is None or (entry is not None and entry.resume_schema is not None):
        return tool
    # A copy, because agents with other rules share the cached tool.
    wrapped = copy.copy(tool)
    function = dispatching(tool, rules, entry)
    wrapped.function_schema = replace(
        tool.function_schema, function=function, json_schema=schema_with_override(tool.function_schema.json_schema)
    )
    wrapped.metadata = {**(tool.metadata or {}), "background": True, "background_disposition": rules.disposition}
    return wrapped


def schema_with_override(schema: JSONMapping) -> JSONObject:
    return {**schema, "properties": {**schema.get("properties", {}), OVERRIDE: OVERRIDE_SCHEMA}}


def without_override(schema: JSONMapping | None) -> JSONObject | None:
    """Return the schema of a tool as people see it, who decide its calls."""
    if schema is None or schema.get("properties", {}).get(OVERRIDE) is not OVERRIDE_SCHEMA:
        return dict(schema) if schema is not None else None
    return {**schema, "properties": {name: item for name, item in schema["properties"].items() if name != OVERRIDE}}


def dispatching(tool: AgentTool, rules: BackgroundRules, entry: Entry | None) -> ToolFunction:
    """Return a function that calls a tool in the foreground, or makes the call a background task."""
    call_in_foreground: ToolFunction = tool.function_schema.function

    async def dispatch(context: RunContext[RunDeps], arguments: JSONMapping) -> Any:
        """Return the acknowledgement of the task of a call, or None if it has to stay in the foreground."""
        # Asked here, because a call by a task counts as approved.
        await ask_person(entry, context, arguments)
        own_rules = rules.for_call(find_override(context))
        task = await run_db(find_or_create_task, background_call(tool, context, arguments, own_rules))
        if task is not None and task.is_awaited:
            raise CallDeferred({TASK_ID: str(task.pk)})
        return None if task is None else acknowledgement(task)

    dispatch_or_report = report_failures_to_model(tool.name, dispatch)

    async def call(context: RunContext[RunDeps], /, **arguments: Any) -> Any:
        is_in_task = context.deps.task_id is not None
        if is_in_task or rules.for_call(find_override(context)).disposition == FOREGROUND:
            return await call_in_foreground(context, **arguments)
        acknowledged = await dispatch_or_report(context, arguments)
        return await call_in_foreground(context, **arguments) if acknowledged is None else acknowledged

    return call


def background_call(
    tool: AgentTool, context: RunContext[RunDeps], arguments: JSONMapping, rules: BackgroundRules
) -> BackgroundCall:
    deps, call_id = context.deps, context.tool_call_id or ""
    attempt = deps.tool_attempts.get(call_id)
    return BackgroundCall(
        deps.run_id,
        tool.name,
        call_id,
        # Without the ID of the run: the ID of the call, which the journal numbers if a model repeats it.
        attempt.idempotency_key.partition(":")[2] if attempt else "",
        call_position(context),
        to_storable_json(dict(arguments)),
        rules,
        is_at_most_once=bool((tool.metadata or {}).get("at_most_once")),
        traceparent=spans.current_traceparent(),
    )


def call_position(context: RunContext[RunDeps]) -> int:
    """Return a number that grows with the calls of a run: the calls of one answer are dispatched in any order."""
    responses = [message for message in context.messages if isinstance(message, ModelResponse)]
    ids = [part.tool_call_id for part in responses[-1].tool_calls] if responses else []
    index = ids.index(context.tool_call_id) if context.tool_call_id in ids else len(ids)
    return len(responses) * MAX_CALLS_PER_ANSWER + min(index, MAX_CALLS_PER_ANSWER - 1)


def acknowledgement(task: BackgroundTask) -> JSONObject:
    """Return what the model reads as the result of a deferred call."""
    return {TASK_ID: str(task.pk), "status": BackgroundTask.Status.PENDING.value, "message": ACKNOWLEDGEMENT}


def find_override(context: RunContext[RunDeps]) -> JSONObject:
    """Return what the model set for the current call in `_background`, or nothing."""
    responses = (message for message in reversed(context.messages) if isinstance(message, ModelResponse))
    for part in (part for response in responses for part in response.tool_calls):
        if part.tool_call_id == context.tool_call_id:
            value = part.args_as_dict(raise_if_invalid=False).get(OVERRIDE)
            return value if isinstance(value, dict) else {}
    return {}


def find_rules_of_call(context: RunContext[RunDeps], metadata: JSONMapping) -> BackgroundRules | None:
    """Return the rules of the current call of a tool that may run in the background, or None for other tools."""
    if not metadata.get("background"):
        return None
    return BackgroundRules(metadata["background_disposition"]).for_call(find_override(context))


class BackgroundOverrides(AbstractCapability[RunDeps]):
    """Capability that removes `_background` from the arguments of a call before they are validated."""

    async def before_tool_validate(
        self, ctx: RunContext[RunDeps], *, call: ToolCallPart, tool_def: ToolDefinition, args: str | JSONObject
    ) -> str | JSONObject:
        own = tool_def.parameters_json_schema.get("properties", {}).get(OVERRIDE)
        if own is not None and own is not OVERRIDE_SCHEMA:
            return args  # the tool has an argument of this name
        if isinstance(args, dict):
            return {name: value for name, value in args.items() if name != OVERRIDE}
        if f'"{OVERRIDE}"' not in args:
            return args
        try:
            values = json.loads(args)
        except (ValueError, RecursionError):
            return args
        return (
            {name: value for name, value in values.items() if name != OVERRIDE} if isinstance(values, dict) else args
        )
