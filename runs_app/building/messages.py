"""A conversation as pydantic-ai keeps it. It imports pydantic-ai, which is heavy: import it where an agent runs."""

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

from runs_app.requests.messages import Message, Part

NO_RESULT = "The caller sent no result of this call."


def prompt_and_history(messages: list[Message]) -> tuple[str | None, list[ModelMessage]]:
    """What the user says now, if anything, and all that was said before."""
    prompt = None
    if messages[-1]["role"] == "user":
        prompt, messages = spoken(messages[-1]["content"]), messages[:-1]
    history = [_model_message(message) for message in messages]
    return prompt, list(_whole(history))


def spoken(parts: Iterable[Part]) -> str:
    """The texts of a message."""
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def _model_message(message: Message) -> ModelMessage:
    if message["role"] == "user":
        return ModelRequest([UserPromptPart(spoken(message["content"]))])
    if message["role"] == "tool":
        return ModelRequest([_return(part) for part in message["content"]])
    return ModelResponse([_said(part) for part in message["content"]])


def _said(part: Part) -> TextPart | ToolCallPart:
    if part["type"] == "text":
        return TextPart(part["text"])
    return ToolCallPart(part["toolName"], part["args"], part["toolCallId"])


def _return(part: Part) -> ToolReturnPart[Any]:
    outcome: Any = "failed" if part.get("isError") else "success"
    return ToolReturnPart(part["toolName"], part["result"], part["toolCallId"], outcome=outcome)


def _whole(history: list[ModelMessage]) -> Iterator[ModelMessage]:
    """The history with a result for every call and a call for every result: providers refuse one without the other."""
    parts = [part for message in history for part in message.parts]
    answered = {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
    called = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
    for message in history:
        results = [part for part in message.parts if isinstance(part, ToolReturnPart)]
        if lone := [part for part in results if part.tool_call_id not in called]:
            yield ModelResponse([ToolCallPart(part.tool_name, {}, part.tool_call_id) for part in lone])
        yield message
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        if left := [part for part in calls if part.tool_call_id not in answered]:
            yield ModelRequest([ToolReturnPart(call.tool_name, NO_RESULT, call.tool_call_id) for call in left])


def client_tools(tools: Iterable[dict[str, Any]]) -> list[ToolDefinition]:
    """The tools that the caller runs itself, as the model is told of them."""
    return [
        ToolDefinition(name=tool["name"], description=tool["description"], parameters_json_schema=tool["schema"])
        for tool in tools
    ]
