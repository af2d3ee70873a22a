"""What happens while a model answers, as chunks. It imports pydantic-ai: import it where an agent runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.usage import RequestUsage, RunUsage

from runs_app.events.chunks import Chunk, bounded, chunk
from runs_app.exceptions import RunError

# The words of pydantic-ai for why a model stopped → those of the wire.
REASONS = {"stop": "stop", "length": "length", "content_filter": "content-filter", "tool_call": "tool-calls"}

LETTERS = 8  # more than a token has: not every server counts the tokens of an answer, and none before its end


class Recorder:
    """Turns the events of one run into chunks, step by step, and keeps what has been said."""

    def __init__(self, add: Callable[[Chunk], None], message_id: str) -> None:
        self.add = add
        self.message_id = message_id
        self.steps = 0
        self.text = ""
        self.said = 0  # letters in all
        self.reason = "stop"

    def begin_step(self) -> None:
        self.steps += 1
        self.text = ""
        self.add(chunk("step-start", messageId=self.message_id, request={}, warnings=[]))

    def end_step(self, response: ModelResponse, *, calls: bool) -> None:
        """Close a step: what the model cost, and why it stopped."""
        self.reason = "tool-calls" if calls else reason(response)
        self.add(
            chunk(
                "step-finish",
                messageId=self.message_id,
                stepResult={"reason": self.reason, "isContinued": calls, "warnings": []},
                output={"text": self.text, "usage": usage(response.usage)},
                metadata={"modelId": response.model_name},
            )
        )

    def record(self, event: Any) -> None:
        for each in self._chunks(event):
            self.add(each)

    def _chunks(self, event: Any) -> Iterator[Chunk]:
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                yield chunk("text-start", id=self._id(event))
                yield from self._said("text", event, text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                yield from self._said("text", event, text)
            case PartEndEvent(part=TextPart()):
                yield chunk("text-end", id=self._id(event))
            case PartStartEvent(part=ThinkingPart(content=text)):
                yield chunk("reasoning-start", id=self._id(event))
                yield from self._said("reasoning", event, text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str() as text)):
                yield from self._said("reasoning", event, text)
            case PartEndEvent(part=ThinkingPart()):
                yield chunk("reasoning-end", id=self._id(event))
            case FunctionToolCallEvent():
                yield tool_call(event)
            case FunctionToolResultEvent():
                yield tool_result(event)

    def _id(self, event: Any) -> str:
        return f"{self.steps}-{event.index}"

    def _said(self, kind: str, event: Any, text: str) -> Iterator[Chunk]:
        self.said += len(text)
        if self.said > LETTERS * settings.RUN_MAX_TOKENS:
            raise RunError("The model did not come to an end and was stopped.", "endless")
        if kind == "text":
            self.text += text
        if text:
            yield chunk(f"{kind}-delta", id=self._id(event), text=text)


def tool_call(event: FunctionToolCallEvent) -> Chunk:
    part = event.part
    # A model may write arguments that are no JSON object; they are shown as they stand.
    arguments = part.args_as_dict(raise_if_invalid=False)
    return chunk("tool-call", toolCallId=part.tool_call_id, toolName=part.tool_name, args=bounded(arguments))


def tool_result(event: FunctionToolResultEvent) -> Chunk:
    part = event.part
    return chunk(
        "tool-result",
        toolCallId=part.tool_call_id,
        toolName=part.tool_name,
        result=bounded(part.content),
        isError=part.outcome != "success",
    )


def reason(response: ModelResponse) -> str:
    if response.finish_reason == "stop" and not says_why(response):
        return "unknown"
    return REASONS.get(response.finish_reason or "stop", "other")


def says_why(response: ModelResponse) -> bool:
    """Whether a provider said why it stopped: pydantic-ai takes a server that says nothing for one that was done."""
    return response.finish_reason not in (None, "stop") or "finish_reason" in (response.provider_details or {})


def usage(used: RunUsage | RequestUsage) -> dict[str, int]:
    """Tokens, under the names of the wire."""
    more = {"cachedInputTokens": used.cache_read_tokens, "reasoningTokens": used.details.get("reasoning_tokens", 0)}
    return {
        "inputTokens": used.input_tokens,
        "outputTokens": used.output_tokens,
        "totalTokens": used.input_tokens + used.output_tokens,
        **{name: count for name, count in more.items() if count},
    }
