"""Structured output: the answer of a run as an object that fits a JSON Schema.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_ai import StructuredDict, ToolOutput
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests

from runs_app.requests.options import Options
from runs_app.requests.structured_output import STRUCTURED_OUTPUT

OUTPUT_TOOL_NAME = "structured_output"  # the model calls it with the answer


def output_types(options: Options) -> list[Any] | None:
    """Return the types of the output of a run, or None for those of its agent."""
    if STRUCTURED_OUTPUT not in options:
        return None
    answer = ToolOutput(StructuredDict(options[STRUCTURED_OUTPUT]["schema"]), name=OUTPUT_TOOL_NAME)
    return [answer, DeferredToolRequests]


def calls_tools(calls: Iterable[ToolCallPart]) -> bool:
    """Return whether these calls of a model are more than its answer."""
    return any(call.tool_name != OUTPUT_TOOL_NAME for call in calls)
