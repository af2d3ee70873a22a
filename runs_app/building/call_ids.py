"""IDs of tool calls that no other call of a run or of its conversation has.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from runs_app.engine.context import RunDeps
from runs_app.models.pending_call import repeated_call_id, split_call_id


def with_unique_call_ids(response: ModelResponse, history: Iterable[ModelMessage], deps: RunDeps) -> ModelResponse:
    """Return an answer whose tool calls have IDs of their own. `history` are the messages before it.

    Some servers repeat them, in one answer or in each. Decisions, results and clients know a call by its ID only.
    """
    if not response.tool_calls:
        return response
    used = {part.tool_call_id for message in history for part in tool_calls_of(message)}
    unique_ids = {id(part): unique_id(part.tool_call_id, used, deps) for part in tool_calls_of(response)}
    if all(part.tool_call_id == unique_ids[id(part)] for part in tool_calls_of(response)):
        return response
    parts = [
        replace(part, tool_call_id=unique_ids[id(part)]) if isinstance(part, ToolCallPart) else part
        for part in response.parts
    ]
    return replace(response, parts=parts)


def unique_id(call_id: str, used: set[str], deps: RunDeps) -> str:
    """Return the ID that the model gave to a call, with a suffix if another call has it. A replay returns the same."""
    deps.call_numbers[call_id] += 1
    number = deps.call_numbers[call_id]
    return call_id if number == 1 and call_id not in used else repeated_call_id(call_id, deps.run_id, number)


def count_call_ids(messages: Iterable[ModelMessage]) -> Counter[str]:
    """Return how many calls in these messages got each ID from the model."""
    return Counter(split_call_id(part.tool_call_id)[0] for message in messages for part in tool_calls_of(message))


def tool_calls_of(message: ModelMessage) -> list[ToolCallPart]:
    return message.tool_calls if isinstance(message, ModelResponse) else []
