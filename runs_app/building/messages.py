"""Conversion of stored messages and client tools into those of pydantic-ai.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from agentcms.wire.json_types import JSONObject
from agentcms.wire.property_order import restore_property_order
from runs_app.requests.messages import InputMessage, MessagePart

NO_RESULT_MESSAGE = "The client sent no result for this call."


def prompt_and_history(messages: list[InputMessage]) -> tuple[str | None, list[ModelMessage]]:
    """Return the last message of the user, or None, and the messages before it."""
    prompt = None
    if messages[-1]["role"] == "user":
        prompt, messages = join_texts(messages[-1]["content"]), messages[:-1]
    history = [_model_message(message) for message in messages]
    return prompt, list(_complete_tool_calls(history))


def join_texts(parts: Iterable[MessagePart]) -> str:
    """Return the text of a message."""
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def _model_message(message: InputMessage) -> ModelMessage:
    if message["role"] == "user":
        return ModelRequest([UserPromptPart(join_texts(message["content"]))])
    if message["role"] == "tool":
        return ModelRequest([_tool_return(part) for part in message["content"]])
    return ModelResponse([_response_part(part) for part in message["content"]])


def _response_part(part: MessagePart) -> TextPart | ToolCallPart:
    if part["type"] == "text":
        return TextPart(part["text"])
    return ToolCallPart(part["toolName"], part["args"], part["toolCallId"])


def _tool_return(part: MessagePart) -> ToolReturnPart[Any]:
    outcome: Any = "failed" if part.get("isError") else "success"
    return ToolReturnPart(part["toolName"], part["result"], part["toolCallId"], outcome=outcome)


def _complete_tool_calls(history: list[ModelMessage]) -> Iterator[ModelMessage]:
    """Yield the history with a result for every call and a call for every result, as providers require."""
    parts = [part for message in history for part in message.parts]
    answered = {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
    called = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
    for message in history:
        results = [part for part in message.parts if isinstance(part, ToolReturnPart)]
        if without_call := [part for part in results if part.tool_call_id not in called]:
            yield ModelResponse([ToolCallPart(part.tool_name, {}, part.tool_call_id) for part in without_call])
        yield message
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        if unanswered := [part for part in calls if part.tool_call_id not in answered]:
            yield ModelRequest([missing_result(call) for call in unanswered])


def missing_result(call: ToolCallPart) -> ToolReturnPart[Any]:
    return ToolReturnPart(call.tool_name, NO_RESULT_MESSAGE, call.tool_call_id)


def client_tool_definitions(tools: Iterable[JSONObject]) -> list[ToolDefinition]:
    """Return the definitions of the tools that the API client executes."""
    return [
        ToolDefinition(
            name=tool["name"],
            description=tool["description"],
            parameters_json_schema=restore_property_order(tool["schema"]),
        )
        for tool in tools
    ]
