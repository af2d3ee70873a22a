"""The recorder, which converts the events of a model run into chunks.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings
from pydantic_ai.messages import (
    DeferredToolRequestsEvent,
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

from agentcms.wire.json_types import JSONMapping
from runs_app.approvals.deferred_requests import client_calls
from runs_app.background.stream_chunks import dispatch_chunks
from runs_app.events.stream_chunks import StreamChunk, build_chunk, truncate_value
from runs_app.exceptions import RunError

# Finish reasons of pydantic-ai → finish reasons of the wire.
FINISH_REASONS = {"stop": "stop", "length": "length", "content_filter": "content-filter", "tool_call": "tool-calls"}

CACHE_HIT = {"cache": "hit"}  # metadata of an answer from the response cache

# More than tokens have. Some servers count no tokens, and none counts them before the end of an answer.
MAX_CHARACTERS_PER_TOKEN = 8


class Recorder:
    """Converter of the events of one run into chunks."""

    def __init__(self, add: Callable[[StreamChunk], None], message_id: str) -> None:
        self.add = add
        self.message_id = message_id
        self.steps = 0
        self.texts: list[str] = []  # of the current step
        self.character_count = 0  # in all steps
        self.finish_reason = "stop"
        self.tool_origins: Mapping[str, Mapping[str, str]] = {}  # of tools from outside, by name
        self.metadata: dict[str, str] = {}  # of the last answer
        self.is_waiting = False  # for people, who decide calls of the current step
        self.has_client_calls = False  # in the last step, which ends the run
        self.recorded_calls: set[str] = set()  # IDs of decided calls, which the earlier segment has recorded
        self.changed_arguments: JSONMapping = {}  # by people, of decided calls by ID

    @property
    def text(self) -> str:
        """The text of the current step."""
        return "".join(self.texts)

    def begin_segment(self, steps: int, calls: Iterable[str], changed: JSONMapping) -> None:
        """Continue after earlier segments with this many steps.

        `calls` are the IDs of the decided calls, and `changed` the arguments of those that people have changed.
        """
        self.steps = steps
        self.recorded_calls = {*calls}
        self.changed_arguments = changed

    def set_answer(self, response: ModelResponse) -> None:
        """Set the text of the current step to that of a complete answer, of which no pieces were recorded here."""
        self.texts = [part.content for part in response.parts if isinstance(part, TextPart)]

    def begin_step(self) -> None:
        self.steps += 1
        self.texts.clear()
        self.add(build_chunk("step-start", messageId=self.message_id, request={}, warnings=[]))

    def end_step(self, response: ModelResponse, *, calls: bool, is_last: bool | None = None) -> None:
        """Record the end of a step with its usage and finish reason.

        `is_last` is None if it is not known yet whether the run ends with the step. Then its calls decide.
        """
        is_continued = (calls if is_last is None else not is_last) and not self.has_client_calls
        reason = finish_reason(response)
        # Without calls of tools, the call is that of the structured output.
        self.finish_reason = "tool-calls" if calls else "stop" if reason == "tool-calls" else reason
        self.metadata = CACHE_HIT if (response.metadata or {}).get("cache") == "hit" else {}
        self.add(
            build_chunk(
                "step-finish",
                messageId=self.message_id,
                stepResult={"reason": self.finish_reason, "isContinued": is_continued, "warnings": []},
                output={"text": self.text, "usage": usage_payload(response.usage)},
                metadata={"modelId": response.model_name, **self.metadata},
            )
        )

    def record(self, event: object) -> None:
        for data in self._chunks(event):
            self.add(data)

    def _chunks(self, event: object) -> Iterator[StreamChunk]:
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                yield build_chunk("text-start", id=self._id(event))
                yield from self._delta("text", event, text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                yield from self._delta("text", event, text)
            case PartEndEvent(part=TextPart()):
                yield build_chunk("text-end", id=self._id(event))
            case PartStartEvent(part=ThinkingPart(content=text)):
                yield build_chunk("reasoning-start", id=self._id(event))
                yield from self._delta("reasoning", event, text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str() as text)):
                yield from self._delta("reasoning", event, text)
            case PartEndEvent(part=ThinkingPart()):
                yield build_chunk("reasoning-end", id=self._id(event))
            case FunctionToolCallEvent(part=part) if part.tool_call_id in self.recorded_calls:
                self.recorded_calls.discard(part.tool_call_id)
            case FunctionToolCallEvent():
                yield tool_call_chunk(event, self.tool_origins.get(event.part.tool_name))
            case FunctionToolResultEvent(part=part):
                yield from dispatch_chunks(part.tool_call_id, part.tool_name, part.content)
                yield self.result_chunk(part.tool_call_id, part.tool_name, part.content, part.outcome != "success")
            case DeferredToolRequestsEvent(requests=requests):
                self.set_deferred(is_of_client=bool(client_calls(requests)))

    def result_chunk(self, call_id: str, name: str, content: object, is_error: bool) -> StreamChunk:
        """Return the chunk of a result. It has the arguments if they differ from those of the call's own chunk."""
        payload = {"toolCallId": call_id, "toolName": name, "result": truncate_value(content), "isError": is_error}
        if call_id in self.changed_arguments:
            payload["args"] = truncate_value(self.changed_arguments[call_id])
        return build_chunk("tool-result", **payload)

    def set_deferred(self, *, is_of_client: bool) -> None:
        self.has_client_calls, self.is_waiting = is_of_client, not is_of_client

    def _id(self, event: Any) -> str:
        return f"{self.steps}-{event.index}"

    def _delta(self, kind: str, event: object, text: str) -> Iterator[StreamChunk]:
        self.character_count += len(text)
        if self.character_count > MAX_CHARACTERS_PER_TOKEN * settings.RUN_MAX_TOKENS:
            raise RunError("The model produced too much text and was stopped.", "endless")
        if kind == "text":
            self.texts.append(text)
        if text:
            yield build_chunk(f"{kind}-delta", id=self._id(event), text=text)


def tool_call_chunk(event: FunctionToolCallEvent, origin: Mapping[str, str] | None) -> StreamChunk:
    """Return the chunk of a call. `origin` says where a tool from outside comes from."""
    part = event.part
    # A model may write arguments that are not a JSON object. They are recorded unchanged.
    arguments = part.args_as_dict(raise_if_invalid=False)
    return build_chunk(
        "tool-call",
        toolCallId=part.tool_call_id,
        toolName=part.tool_name,
        args=truncate_value(arguments),
        **({"origin": dict(origin)} if origin else {}),
    )


def finish_reason(response: ModelResponse) -> str:
    """Return the finish reason of a response under its wire name."""
    if response.finish_reason == "stop" and not reports_finish_reason(response):
        return "unknown"
    return FINISH_REASONS.get(response.finish_reason or "stop", "other")


def reports_finish_reason(response: ModelResponse) -> bool:
    """Return False if the provider sent no finish reason. pydantic-ai then reports "stop"."""
    return response.finish_reason not in (None, "stop") or "finish_reason" in (response.provider_details or {})


def usage_payload(usage: RunUsage | RequestUsage) -> dict[str, int]:
    """Return the token counts under wire names. Optional counts are left out if zero, or if a server invents them."""
    reasoning_tokens = usage.details.get("reasoning_tokens", 0)
    optional = {"cachedInputTokens": usage.cache_read_tokens, "reasoningTokens": reasoning_tokens}
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
        **{name: count for name, count in optional.items() if count > 0},
    }
