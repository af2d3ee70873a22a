"""What an agent may call, as pydantic-ai's tools: tools, integration tools, workflows and sub-agents.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
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
from pydantic_ai import CallDeferred, ModelRetry, RunContext, Tool, ToolFailed

from agents_app.registry import Entry, Kind
from runs_app.building.tool_names import PREFIXES, tool_name
from runs_app.building.workflows import run_workflow
from runs_app.engine.context import RunDeps
from runs_app.engine.threads import run_blocking
from runs_app.events.chunks import to_storable_json

log = logging.getLogger(__name__)

AgentTool = Tool[RunDeps]

LONGEST_ERROR = 500  # characters of what a tool says of its failure
LONGEST_RESULT = 256 * 1024  # characters of JSON
APPROVAL = (
    "This tool needs the approval of a person, which cannot be asked for yet. Nothing was done. Tell the user so."
)


def registered_tool(key: str, entry: Entry) -> AgentTool:
    """A tool that code registered."""
    if entry.requires_approval:
        return build_tool(Kind.TOOL, key, key, entry.description, entry.target, refusing_without_approval)
    return build_tool(Kind.TOOL, key, key, entry.description, entry.target, timed=True)


def integration_tool(key: str, entry: Entry) -> AgentTool:
    """One of the functions of an integration provider."""
    function = entry.target[key.partition("_")[2]]
    description = inspect.getdoc(function) or entry.description
    return build_tool(Kind.INTEGRATION_PROVIDER, key, key, description, function, timed=True)


def workflow_tool(key: str, entry: Entry) -> AgentTool:
    """A workflow; a Celery task among them is a job that a worker does."""

    async def run(context: RunContext[RunDeps], arguments: Mapping[str, Any]) -> Any:
        return await run_workflow(entry, arguments, context.deps.user_id)

    function = getattr(entry.target, "run", entry.target)
    return build_tool(Kind.WORKFLOW, key, f"{PREFIXES['workflows']}{key}", entry.description, function, run)


def sub_agent_tool(key: str, description: str) -> AgentTool:
    """Another agent, which answers in a run of its own."""

    def question(prompt: str) -> None:
        """The arguments of every sub-agent."""

    async def ask(context: RunContext[RunDeps], arguments: Mapping[str, Any]) -> Any:
        return await context.deps.call_sub_agent(key, arguments["prompt"], context.tool_call_id or "")

    said = f"Asks the agent '{key}', which knows nothing of this conversation but the prompt. {description}".strip()
    return build_tool(Kind.AGENT, key, f"{PREFIXES['agents']}{key}", said, question, ask)


Act = Callable[[RunContext[RunDeps], Mapping[str, Any]], Awaitable[Any]]


def build_tool(
    kind: Kind, key: str, name: str, description: str, function: Any, act: Act | None = None, *, timed: bool = False
) -> AgentTool:
    """A tool with the arguments of a function, which is called itself unless another act takes them."""

    async def call_function(context: RunContext[RunDeps], arguments: Mapping[str, Any]) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(**arguments)
        return await run_blocking(function, **arguments)

    return Tool(
        with_context(function, report_failures_to_model(name, act or call_function)),
        takes_ctx=True,
        name=tool_name(name),
        description=description,
        metadata={"kind": kind.value, "key": key},
        timeout=settings.RUN_TOOL_TIMEOUT if timed else None,
    )


def with_context(function: Any, act: Act) -> Any:
    """A function with the signature of another after the context of the run, off which the arguments are read."""

    @wraps(function)
    async def call(context: RunContext[RunDeps], **arguments: Any) -> Any:
        return await act(context, arguments)

    signature = inspect.signature(function, eval_str=True)
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunContext[RunDeps])
    given: Any = call
    given.__signature__ = signature.replace(parameters=[context, *signature.parameters.values()])
    given.__annotations__ = {"context": RunContext[RunDeps], **inspect.get_annotations(function, eval_str=True)}
    del given.__wrapped__  # or its signature would be read past ours
    return given


def report_failures_to_model(name: str, act: Act) -> Act:
    """An act whose failure is an answer to the model, and never the end of the run."""

    async def attempt(context: RunContext[RunDeps], arguments: Mapping[str, Any]) -> Any:
        try:
            return await run_blocking(as_json, await act(context, arguments))
        except (ToolFailed, ModelRetry, CallDeferred):
            raise
        except ValidationError as error:
            raise ToolFailed(" ".join(error.messages)) from None
        except (Exception, SystemExit) as error:  # an exit would end the event loop with all its runs
            log.warning("The tool '%s' failed.", name, exc_info=error)
            raise ToolFailed(f"{type(error).__name__}: {error}"[:LONGEST_ERROR]) from None

    return attempt


def as_json(value: Any) -> Any:
    """What a tool returned as JSON, which is what the model and the events of the run can hold."""
    plain = to_storable_json(value)
    if len(json.dumps(plain)) > LONGEST_RESULT:
        raise ToolFailed(f"The result is larger than {LONGEST_RESULT // 1024} kB. Ask for less at once.")
    return plain


async def refusing_without_approval(context: RunContext[RunDeps], arguments: Mapping[str, Any]) -> Any:
    raise ToolFailed(APPROVAL)
