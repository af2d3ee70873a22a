"""The built-in provider `demo`: a model that needs no key, says the same to the same, and calls tools when asked to.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

NAMES = ("echo", "storyteller")
DELAY = 0.01  # seconds between two words, so that a stream is seen to stream
LONGEST_DELAY = 2.0


def demo_model(name: str, settings: Mapping[str, Any]) -> FunctionModel:
    """One of the demo's models; `delay` is the seconds between two words."""
    delay = settings.get("delay", DELAY)
    wait = min(max(float(delay), 0.0), LONGEST_DELAY) if isinstance(delay, int | float) else DELAY

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        results = _results(messages)
        if not results and (call := _wanted_tool(_said(messages), info)):
            yield {0: call}
            return
        for word in _words(_text(name, messages, results)):
            yield word
            await asyncio.sleep(wait)

    return FunctionModel(stream_function=answer, model_name=name)


def _said(messages: list[ModelMessage]) -> str:
    """The last thing that the user wrote."""
    for message in reversed(messages):
        for part in reversed(message.parts):
            if isinstance(part, UserPromptPart):
                return part.content if isinstance(part.content, str) else " ".join(map(str, part.content))
    return ""


def _results(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    last = messages[-1]
    return [part for part in last.parts if isinstance(part, ToolReturnPart)] if isinstance(last, ModelRequest) else []


def _wanted_tool(said: str, info: AgentInfo) -> DeltaToolCall | None:
    """A call of the tool that the message names."""
    for tool in info.function_tools:
        if tool.name in said:
            required = tool.parameters_json_schema.get("required", [])
            arguments = dict.fromkeys(required, said)
            return DeltaToolCall(tool.name, json.dumps(arguments), tool_call_id=f"demo_{tool.name}")
    return None


def _text(name: str, messages: list[ModelMessage], results: list[ToolReturnPart]) -> str:
    if results:
        told = "; ".join(f"{part.tool_name} says {part.model_response_str()}" for part in results)
        return f"I am the demo model. {told}."
    return f"I am the demo model '{name}'. You said: {_said(messages)}"


def _words(text: str) -> list[str]:
    """The text cut after each space."""
    return text.replace(" ", " \0").split("\0")
