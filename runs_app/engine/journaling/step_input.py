"""The identity of a step of a durable run: its key, and a mark of its input.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from pydantic_ai import ModelRequest, ModelResponse, RunContext, ToolCallPart
from pydantic_ai.durable_exec import (
    CapabilityOperationId,
    DurableOperationId,
    ModelRequestId,
    ToolsetCallToolId,
    ToolsetValidateToolArgumentsId,
)
from pydantic_ai.messages import ModelMessage
from pydantic_ai.toolsets import ToolsetTool

from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONMapping
from runs_app.engine.context import RunDeps
from runs_app.events.stream_chunks import to_storable_json
from runs_app.models import RunStep
from runs_app.models.pending_call import split_call_id, step_call_key

MOCK_PREFIX = "x/"  # of the keys of steps that choose a mock


@dataclass(frozen=True)
class StepInput:
    """A step before its execution."""

    key: str  # without the segment, and without the number among equal keys
    kind: str  # of RunStep.Kind
    name: str
    mark: str
    is_numbered: bool = True
    call_id: str = ""  # of a tool call
    is_at_most_once: bool = False
    deps: RunDeps | None = None  # of a tool call


def identify_step(operation: DurableOperationId, arguments: tuple[object, ...]) -> StepInput:
    """Return the input of an operation. `arguments` are those that pydantic-ai passes for hashing."""
    match operation:
        case ModelRequestId(model_name=name):
            messages = cast("list[ModelMessage]", arguments[1])
            return StepInput("m", RunStep.Kind.MODEL, name[:128], short_hash([*message_outline(messages)]))
        case ToolsetCallToolId():
            return identify_call("t", *cast("CallArguments", arguments))
        case ToolsetValidateToolArgumentsId():
            return identify_call("v", *cast("CallArguments", arguments))
        case CapabilityOperationId(capability_id=capability, operation=name):
            mark = short_hash(to_storable_json(arguments[1]))
            return StepInput(f"c/{capability}.{name}", RunStep.Kind.CAPABILITY, f"{capability}.{name}"[:128], mark)
    name = type(operation).__name__.removesuffix("Id")
    return StepInput(f"o/{name}", RunStep.Kind.OTHER, name, "")


CallArguments = tuple[str, JSONMapping, RunContext[RunDeps], ToolsetTool[RunDeps] | None]


def identify_call(
    prefix: str,
    name: str,
    arguments: JSONMapping,
    ctx: RunContext[RunDeps],
    tool: ToolsetTool[RunDeps] | None,
) -> StepInput:
    """Return the input of a tool call."""
    call_id = ctx.tool_call_id or ""
    metadata = (tool.tool_def.metadata if tool is not None else None) or {}
    is_call = prefix == "t"
    return StepInput(
        f"{prefix}/{step_call_key(call_id)}",
        RunStep.Kind.TOOL if is_call else RunStep.Kind.OTHER,
        name[:128],
        short_hash([name, original_arguments(ctx.messages, call_id, arguments)]),
        is_numbered=False,
        call_id=call_id,
        is_at_most_once=is_call and bool(metadata.get("at_most_once")),
        deps=ctx.deps if is_call else None,
    )


def identify_mock(name: str, arguments: JSONMapping, call_id: str) -> StepInput:
    """Return the input of the choice of a mock, which answers a tool call in an experiment."""
    mark = short_hash([name, to_storable_json(arguments)])
    key = f"{MOCK_PREFIX}{step_call_key(call_id)}"
    return StepInput(key, RunStep.Kind.OTHER, name[:128], mark, is_numbered=False)


def original_arguments(messages: Iterable[ModelMessage], call_id: str, arguments: JSONMapping) -> object:
    """Return the arguments of a tool call as the model wrote them. The validated ones may have no stable text."""
    for message in reversed([*messages]):
        if isinstance(message, ModelResponse):
            for part in message.parts:
                if isinstance(part, ToolCallPart) and part.tool_call_id == call_id:
                    return to_storable_json(part.args)
    return to_storable_json(arguments)


def message_outline(messages: Iterable[ModelMessage]) -> Iterator[list[str]]:
    """Yield what is constant in the messages of a request: their kinds, and the tool calls in them."""
    for message in messages:
        side = "request" if isinstance(message, ModelRequest) else "response"
        # A tool that was removed meanwhile answers with an error, which is a part of another kind.
        # The previous release left repeated IDs as they were.
        yield [side, *(split_call_id(getattr(part, "tool_call_id", None) or "")[0] for part in message.parts)]


def short_hash(value: object) -> str:
    return sha256_hex(canonical(value))[:16]
