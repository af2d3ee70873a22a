"""Structured output: the answer of a run as an object that fits a JSON Schema.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_ai import ModelRetry, RunContext, StructuredDict, ToolOutput
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests

from agentcms.wire.property_order import restore_property_order
from agents_app.configuration.json_issues import issues_by_schema
from agents_app.configuration.schema import Issue
from runs_app.building.tool_names import OUTPUT_TOOL
from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import run_briefly
from runs_app.events.stream_chunks import to_storable_json
from runs_app.exceptions import RunError
from runs_app.requests.inlined_schema import inline_references
from runs_app.requests.options import Options
from runs_app.requests.structured_output import STRUCTURED_OUTPUT

MAX_REPORTED_ISSUES = 20  # of one answer


def output_types(options: Options) -> list[Any] | None:
    """Return the types of the output of a run, or None for those of its agent."""
    if STRUCTURED_OUTPUT not in options:
        return None
    schema = restore_property_order(inline_references(options[STRUCTURED_OUTPUT]["schema"]))
    answer = ToolOutput(StructuredDict(schema), name=OUTPUT_TOOL)
    return [answer, DeferredToolRequests]


async def reject_unfit_answer(ctx: RunContext[RunDeps], answer: object) -> None:
    """Ask the model again for an object that does not fit the schema of the run.

    pydantic-ai only checks that it is an object. Raise ModelRetry, or RunError if it is the last attempt.
    """
    issues = [] if ctx.partial_output else await find_answer_issues(ctx.deps.options, answer)
    if not issues:
        return
    texts = [f"{field}: {message}" if field else message for field, message in issues[:MAX_REPORTED_ISSUES]]
    if ctx.last_attempt:
        raise RunError(f"The answer of the model does not fit the schema. {' '.join(texts)}", "unfit_answer")
    raise ModelRetry(f"The answer does not fit the schema. {' '.join(texts)}")


async def find_answer_issues(options: Options, answer: object) -> list[Issue]:
    """Return why an object does not fit the schema of a run with these options, as fields with messages."""
    output = options.get(STRUCTURED_OUTPUT)
    if output is None or not isinstance(answer, dict):
        return []
    # In a thread: the schema of a caller may take long, and the event loop executes other runs.
    schema = inline_references(output["schema"])
    return await run_briefly(issues_by_schema, to_storable_json(answer), schema, "")


def calls_tools(calls: Iterable[ToolCallPart]) -> bool:
    """Return whether these calls of a model are more than its answer."""
    return any(call.tool_name != OUTPUT_TOOL for call in calls)
