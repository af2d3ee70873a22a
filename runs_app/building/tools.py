"""Tools of pydantic-ai for the tools, integration tools, workflows and sub-agents of an agent.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, Tool, ToolFailed

from agentcms.errors import OutsideError
from agentcms.logs import describe_exception
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.registry import Entry, Kind, is_task
from runs_app import calling
from runs_app.approvals.lookup import CHILD_RUN_ID
from runs_app.building.tool_messages import (
    UNREADABLE_RESULT_MESSAGE,
    UNREADABLE_VALUE,
    error_message,
    text_of_unknown_value,
)
from runs_app.building.tool_names import TOOL_PREFIXES, tool_name
from runs_app.building.workflows import run_workflow
from runs_app.engine.context import RunDeps
from runs_app.engine.journaling.journal import current_journal, interrupting_outages
from runs_app.engine.thread_pools import keep_loop_running, run_briefly, run_function
from runs_app.events.stream_chunks import to_storable_json
from runs_app.exceptions import ChildSuspended, RunInterrupted, RunLeaseLost

log = logging.getLogger(__name__)

AgentTool = Tool[RunDeps]
ToolHandler = Callable[[RunContext[RunDeps], Mapping[str, Any]], Awaitable[Any]]

MAX_RESULT_SIZE = 256 * 1024  # bytes of the text that a model gets
NAMELESS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)  # kinds of parameters


def registered_tool(key: str, entry: Entry) -> AgentTool:
    """Build a tool that code registers."""
    return build_tool(Kind.TOOL, key, key, entry.description, entry.target, timed=True, entry=entry)


def integration_tool(key: str, entry: Entry) -> AgentTool:
    """Build a tool for a function of an integration provider."""
    function = entry.target[key.partition("_")[2]]
    description = inspect.getdoc(function) or entry.description
    return build_tool(Kind.INTEGRATION_PROVIDER, key, key, description, function, timed=True)


def outside_tool(entry: Entry, handler: ToolHandler, *, at_most_once: bool, origin: Mapping[str, str]) -> AgentTool:
    """Build a tool from outside of this application, which has a JSON Schema and no function.

    The model reads its failures, its results are limited, and it has a timeout. `origin` is what the event of a
    call says of it, with the hash of the definition: strings under wire names.
    """
    tool = Tool.from_schema(
        with_arguments(report_failures_to_model(entry.tool_name, handler)),
        name=tool_name(entry.tool_name),
        description=entry.description,
        json_schema=dict(entry.schema),
        takes_ctx=True,
    )
    rules = {**call_rules(entry), "at_most_once": at_most_once}
    tool.metadata = {"kind": entry.kind.value, "key": entry.key, **rules, "origin": describe_origin(entry, origin)}
    tool.timeout = settings.RUN_TOOL_TIMEOUT
    return tool


def describe_origin(entry: Entry, origin: Mapping[str, str]) -> JSONObject:
    """Return what the event of a call says of a tool from outside of this application."""
    return {"kind": entry.kind.value, **origin, "definitionHash": entry.definition_hash or hash_definition(entry)}


def hash_definition(entry: Entry) -> str:
    """Return a hash of all that a model reads of a tool."""
    definition = {"name": entry.tool_name, "description": entry.description, "schema": dict(entry.schema)}
    return sha256_hex(canonical(definition))


def with_arguments(handler: ToolHandler) -> Callable[..., Awaitable[Any]]:
    """Return a function with the run context and any named arguments, which calls the handler."""

    async def call(context: RunContext[RunDeps], /, **arguments: Any) -> Any:
        return await handler(context, arguments)

    return call


def workflow_tool(key: str, entry: Entry) -> AgentTool:
    """Build a tool for a workflow. A worker executes workflows that are Celery tasks."""

    async def run(context: RunContext[RunDeps], arguments: JSONMapping) -> Any:
        attempt = context.deps.tool_attempts.get(context.tool_call_id or "")
        key = attempt.idempotency_key if attempt is not None else None
        # The job of a Celery task goes on meanwhile, and the next attempt of the call finds it.
        with interrupting_outages(current_journal.get() if is_task(entry.target) else None):
            return await run_workflow(entry, arguments, context.deps.user_id, key, context.deps.run_id)

    function = getattr(entry.target, "run", entry.target)
    return build_tool(Kind.WORKFLOW, key, f"{TOOL_PREFIXES['workflows']}{key}", entry.description, function, run)


def sub_agent_tool(key: str, description: str, entry: Entry | None = None) -> AgentTool:
    """Build a tool for another agent, which answers in a child run. `entry` is that of a registered agent."""

    def signature(prompt: str) -> None:
        """Define the arguments of every sub-agent."""

    async def call(context: RunContext[RunDeps], arguments: JSONMapping) -> Any:
        return await context.deps.call_sub_agent(key, arguments["prompt"], context.tool_call_id or "")

    usage = f"Calls the agent '{key}'. It knows the prompt, but not this conversation."
    name = f"{TOOL_PREFIXES['agents']}{key}"
    tool = build_tool(Kind.AGENT, key, name, f"{usage} {description}".strip(), signature, call)
    if entry is not None and entry.kind == Kind.ACP_AGENT:
        tool.metadata = {**(tool.metadata or {}), "origin": describe_origin(entry, {"server": entry.target})}
    return tool


def build_tool(
    kind: Kind,
    key: str,
    name: str,
    description: str,
    function: Any,
    handler: ToolHandler | None = None,
    *,
    timed: bool = False,
    entry: Entry | None = None,
) -> AgentTool:
    """Build a tool with the parameters of a function. It calls the handler, or by default the function.

    `entry` has the rules of its calls, such as those of their approval.
    """
    handler = handler or function_handler(function, entry)
    return Tool(
        with_run_context(function, report_failures_to_model(name, handler)),
        takes_ctx=True,
        name=tool_name(name),
        description=description,
        metadata={"kind": kind.value, "key": key, **call_rules(entry)},
        # Workflows and sub-agents may take as long as their run.
        timeout=settings.RUN_TOOL_TIMEOUT if timed else None,
    )


def function_handler(function: Any, entry: Entry | None) -> ToolHandler:
    """Return a handler that calls a function, unless a person must approve the call first."""

    async def call_function(context: RunContext[RunDeps], arguments: JSONMapping) -> Any:
        await ask_person(entry, context, arguments)
        return await run_function(function, arguments)

    return call_function


def call_rules(entry: Entry | None) -> JSONObject:
    """Return the rules of the calls of a tool, for its metadata."""
    return (
        {}
        if entry is None
        else {
            "at_most_once": entry.at_most_once,
            "requires_approval": entry.requires_approval is True,
            "approver": entry.approver,
            "four_eyes": entry.four_eyes,
            "resume_schema": entry.resume_schema,
            "expires": entry.expires,
        }
    )


async def ask_person(entry: Entry | None, context: RunContext[RunDeps], arguments: JSONMapping) -> None:
    """Raise ApprovalRequired if the predicate of a tool wants a person to approve this call, or raises an error."""
    predicate = entry.requires_approval if entry is not None else False
    if isinstance(predicate, bool) or context.tool_call_approved:
        return  # `StepPolicy` asks for tools whose calls all need approval
    try:
        if inspect.iscoroutinefunction(predicate):
            needs_approval = await keep_loop_running(predicate(arguments, calling.current()))
        else:
            needs_approval = await run_briefly(predicate, arguments, calling.current())
    except Exception:
        log.exception("The predicate that decides about the approval of a call failed, so a person is asked.")
        needs_approval = True
    if needs_approval:
        raise ApprovalRequired


def with_run_context(function: Any, handler: ToolHandler) -> Any:
    """Return a function with the run context and the parameters of `function`, which calls the handler.

    Raise TypeError if a parameter of `function` has no name for its callers.
    """

    @wraps(function)
    async def call(context: RunContext[RunDeps], /, **arguments: Any) -> Any:
        return await handler(context, arguments)

    signature = inspect.signature(function, eval_str=True)
    if nameless := [str(parameter) for parameter in signature.parameters.values() if parameter.kind in NAMELESS]:
        raise TypeError(f"Tools get their arguments by name. Let {', '.join(nameless)} be ordinary parameters.")
    name = "context"
    while name in signature.parameters:
        name += "_"
    context = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunContext[RunDeps])
    result: Any = call
    result.__signature__ = signature.replace(parameters=[context, *signature.parameters.values()])
    result.__annotations__ = {name: RunContext[RunDeps], **inspect.get_annotations(function, eval_str=True)}
    del result.__wrapped__  # otherwise inspection would use the signature of the wrapped function
    return result


def report_failures_to_model(name: str, handler: ToolHandler) -> ToolHandler:
    """Wrap a handler so that the model receives its errors as results. They do not end the run."""

    async def attempt(context: RunContext[RunDeps], arguments: JSONMapping) -> Any:
        try:
            with calling.tool_call(current_call(context)):
                return await run_briefly(to_tool_result, await handler(context, arguments))
        except (ToolFailed, ModelRetry, CallDeferred, ApprovalRequired, RunInterrupted, RunLeaseLost):
            raise
        except calling.CallSuspended as suspension:
            payload = await run_briefly(to_tool_result, suspension.payload)
            schema = {"resumeSchema": dict(suspension.resume_schema)} if suspension.resume_schema else {}
            raise ApprovalRequired({"kind": "suspend", "payload": payload, **schema}) from None
        except ChildSuspended as suspension:
            raise CallDeferred({CHILD_RUN_ID: str(suspension.child_id)}) from None
        except ValidationError as error:
            raise ToolFailed(" ".join(error.messages)) from None
        except OutsideError as error:
            log.warning("The tool '%s' failed: %s.", name, describe_exception(error))
            raise ToolFailed(error_message(error)) from None
        except (Exception, SystemExit) as error:  # SystemExit would end the event loop with all its runs
            log.warning("The tool '%s' failed.", name, exc_info=error)
            raise ToolFailed(error_message(error)) from None

    return attempt


def current_call(context: RunContext[RunDeps]) -> calling.ToolCall:
    """Return what a tool may know about its call."""
    deps, call_id = context.deps, context.tool_call_id or ""
    attempt = deps.tool_attempts.get(call_id)
    number, key = (attempt.number, attempt.idempotency_key) if attempt else (1, f"{deps.run_id}:{call_id}")
    resume_data = (context.tool_call_metadata or {}).get("resumeData")
    return calling.ToolCall(
        deps.run_id, deps.root_id or deps.run_id, call_id, number, key, resume_data, deps.report_progress
    )


def to_tool_result(value: JSONValue) -> JSONValue:
    """Return the result of a tool as JSON that can be stored and sent to a model.

    Values inside it that JSON does not have become their text, or words if they have none. Raise ToolFailed if the
    whole result is such a value, or if it is too large.
    """
    try:
        plain = to_storable_json(value, fallback=text_of_unknown_value)
    except Exception as error:  # a circular reference, or an error in a method of the value
        log.warning("A tool returned a value that cannot be converted to JSON.", exc_info=error)
        raise ToolFailed(UNREADABLE_RESULT_MESSAGE) from None
    if plain == UNREADABLE_VALUE:
        raise ToolFailed(UNREADABLE_RESULT_MESSAGE)
    # A text reaches the model as it is. In JSON with escapes, most alphabets would need six characters for a letter.
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > MAX_RESULT_SIZE:
        raise ToolFailed(f"The result is larger than {MAX_RESULT_SIZE // 1024} kB. Ask for less data.")
    return plain
