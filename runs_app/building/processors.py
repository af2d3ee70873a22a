"""Input and output processors, as capabilities of an agent.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from django.core.exceptions import ValidationError
from pydantic_ai import (
    ModelRequest,
    ModelResponse,
    PartStartEvent,
    RetryPromptPart,
    RunContext,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.capabilities import AbstractCapability, durable_operation
from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponsePart, ModelResponseStreamEvent
from pydantic_ai.models import (
    CompletedStreamedResponse,
    Model,
    ModelRequestContext,
    ModelRequestParameters,
    StreamedResponse,
)
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from agentcms.wire.json_types import JSONMapping, JSONValue
from agents_app.registry import Entry
from memory_app.history.messages_for_model import PAYLOAD, UNPROCESSED
from memory_app.history.signal_payloads import signal_of_payload
from memory_app.history.thread_signals import save_processed_signal
from runs_app.building.text_values import find_texts, replace_texts
from runs_app.building.tool_names import OUTPUT_TOOL
from runs_app.engine.context import ProcessedParts, RunDeps
from runs_app.engine.thread_pools import keep_loop_running, run_briefly, run_db
from runs_app.exceptions import RunError
from runs_app.thread_signals.signal_messages import SignalPayload, delivered_payload, delivered_text
from runs_app.thread_signals.woken_input import save_in_input

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Processor:
    """A registered function with the arguments that the agent configures for it."""

    key: str
    function: Callable[..., Any]
    arguments: JSONMapping
    tool_results: bool = False

    @classmethod
    def from_entry(cls, entry: Entry, choice: JSONMapping) -> Processor:
        """Return the processor of a configuration. Members that match parameters of the function are arguments."""
        arguments = {name: choice[name] for name in entry.argument_names if name in choice}
        return cls(entry.key, entry.target, arguments, entry.processes_tool_results)

    async def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return the processed texts. Raise RunError on failure, because the unprocessed text must not be used."""
        try:
            if inspect.iscoroutinefunction(self.function):
                results = [await keep_loop_running(self.function(text, **self.arguments)) for text in texts]
            else:
                results = await run_briefly(self.process_all, texts)
        except ValidationError as error:
            raise RunError(f"The processor '{self.key}' stopped the run. {' '.join(error.messages)}") from None
        except Exception as error:
            log.exception("The processor '%s' failed.", self.key)
            raise RunError(f"The processor '{self.key}' failed, so the run was stopped.") from error
        if not all(isinstance(result, str) for result in results):
            raise RunError(f"The processor '{self.key}' did not return a text, so the run was stopped.")
        return results

    def process_all(self, texts: Sequence[str]) -> list[str]:
        return [self.function(text, **self.arguments) for text in texts]


def is_processed(message: ModelMessage) -> bool:
    """Return whether the input processors of an earlier run have seen a remembered message."""
    return not (isinstance(message, ModelRequest) and (message.metadata or {}).get(UNPROCESSED))


@dataclass
class InputProcessors(AbstractCapability[RunDeps]):
    """Capability that applies processors to every text that is new in a request to the model.

    These are the words of people, and for processors that ask for them the results of tools. Remembered messages are
    already processed, except for signals to a run that failed.
    """

    processors: tuple[Processor, ...] = ()
    id: str | None = field(default="input-processors", kw_only=True)

    async def prepare_model_request(
        self, ctx: RunContext[RunDeps], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        # This hook comes after those that may add messages to the request.
        processed = ctx.deps.processed_parts
        if ctx.deps.steps_before + ctx.run_step == 1:
            remembered = [message for message in ctx.messages[: ctx.deps.remembered_count] if is_processed(message)]
            processed.update((id(part), (part, part)) for message in remembered for part in message.parts)
        for message in (*ctx.messages, *request_context.messages):
            if isinstance(message, ModelRequest):
                # In place, because the history of the run and the request share their messages.
                if (signal := delivered_payload(message)) is not None:
                    await self.process_signal(ctx, message, signal)
                message.parts = [await self.process_once(ctx, part, processed) for part in message.parts]
        return request_context

    async def process_signal(self, ctx: RunContext[RunDeps], message: ModelRequest, signal: SignalPayload) -> None:
        """Process the text and the attributes of a signal, so that its markup stays whole, and store the result."""
        processed = ctx.deps.processed_parts
        prompts = [part for part in message.parts if isinstance(part, UserPromptPart)]
        if not prompts or all(id(part) in processed for part in prompts):
            return
        # In the order of the signal: a replay must process the same texts as the recorded step.
        given = signal_of_payload(signal).attributes
        values = {name: value for name, value in given.items() if isinstance(value, str)}
        texts = await self.process_texts(ctx, [signal["contents"], *values.values()], of_tool=False)
        attributes = {**given, **dict(zip(values, texts[1:], strict=True))}
        changed = {**signal, "contents": texts[0], "attributes": attributes}
        result = replace(prompts[0], content=delivered_text(changed))
        processed[id(prompts[0])] = (prompts[0], result)
        processed[id(result)] = (result, result)
        message.metadata = {**(message.metadata or {}), PAYLOAD: changed}
        if changed != signal and ctx.deps.thread_id is not None:
            await run_db(save_processed_signal, ctx.deps.thread_id, signal["key"], texts[0], attributes)
        if ctx.deps.is_woken:
            await run_db(save_in_input, ctx.deps.run_id, changed)

    async def process_once(
        self, ctx: RunContext[RunDeps], part: ModelRequestPart, processed: ProcessedParts
    ) -> ModelRequestPart:
        if id(part) not in processed:
            result = await self.process(ctx, part)
            # With the part itself: if it were freed, another one could get its `id`.
            processed[id(part)] = (part, result)
            processed[id(result)] = (result, result)
        return cast(ModelRequestPart, processed[id(part)][1])

    async def process(self, ctx: RunContext[RunDeps], part: ModelRequestPart) -> ModelRequestPart:
        """Return a part with processed texts."""
        if isinstance(part, UserPromptPart):
            return replace(part, content=await self.process_content(ctx, part.content, of_tool=False))
        if not any(processor.tool_results for processor in self.processors):
            return part
        if isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and isinstance(part.content, str)):
            return replace(part, content=await self.process_content(ctx, part.content, of_tool=True))
        return part

    async def process_content(self, ctx: RunContext[RunDeps], content: JSONValue, *, of_tool: bool) -> JSONValue:
        """Return a text, a list of contents or a JSON value with each of its texts processed."""
        originals = [*dict.fromkeys(find_texts(content))]
        if not originals:
            return content
        texts = await self.process_texts(ctx, originals, of_tool)
        return replace_texts(content, dict(zip(originals, texts, strict=True)))

    @durable_operation(name="process")
    async def process_texts(self, ctx: RunContext[RunDeps], texts: list[str], of_tool: bool) -> list[str]:
        """Return processed texts. In a durable run this is a step, so another process does not repeat it."""
        for processor in self.processors:
            if processor.tool_results or not of_tool:
                texts = await processor(texts)
        return texts


@dataclass
class OutputProcessors(AbstractCapability[RunDeps]):
    """Capability that applies processors to the texts of the model."""

    processors: tuple[Processor, ...] = ()

    def get_wrapper_model(self, model: Model) -> Model:
        return ProcessedModel(model, self.processors)


class ProcessedModel(WrapperModel):
    """Model wrapper that processes the complete answer before any of it is streamed."""

    def __init__(self, wrapped: Model, processors: tuple[Processor, ...]) -> None:
        super().__init__(wrapped)
        self.processors = processors

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return await self.process(await self.wrapped.request(*args, **kwargs))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        arguments = (messages, model_settings, model_request_parameters, run_context)
        async with self.wrapped.request_stream(*arguments) as stream:
            async for _ in stream:  # to its end: `get` returns what has arrived
                pass
            response = await self.process(stream.get())
        yield ReplayedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)

    async def process(self, response: ModelResponse) -> ModelResponse:
        return replace(response, parts=[await self.process_part(part) for part in response.parts])

    async def process_part(self, part: ModelResponsePart) -> ModelResponsePart:
        """Return a text with processed content, and an answer that is an object with processed texts."""
        if isinstance(part, TextPart):
            (text,) = await self.process_texts([part.content])
            return replace(part, content=text)
        if isinstance(part, ToolCallPart) and part.tool_name == OUTPUT_TOOL:
            arguments: Any = await self.process_answer(part)
            return replace(part, args=arguments)
        return part

    async def process_answer(self, call: ToolCallPart) -> str | dict[str, Any] | None:
        """Return the arguments of the call that answers, with processed texts. The schema names their keys."""
        try:
            answer = call.args_as_dict(raise_if_invalid=True)
        except (ValueError, AssertionError):  # no object, so pydantic-ai asks the model again
            return call.args
        originals = [*dict.fromkeys(find_texts(answer, keys=False))]
        texts = dict(zip(originals, await self.process_texts(originals), strict=True))
        return cast("dict[str, Any]", replace_texts(answer, texts, keys=False))

    async def process_texts(self, texts: Sequence[str]) -> Sequence[str]:
        for processor in self.processors:
            texts = await processor(texts)
        return texts


class ReplayedResponse(CompletedStreamedResponse):
    """A complete answer as a stream, without its reasoning, which the processors have not seen."""

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        async for event in super()._get_event_iterator():
            if not (isinstance(event, PartStartEvent) and isinstance(event.part, ThinkingPart)):
                yield event
