"""Input and output processors, as capabilities of an agent.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import ValidationError
from pydantic_ai import ModelRequest, ModelResponse, PartStartEvent, RunContext, TextPart, ThinkingPart, UserPromptPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponseStreamEvent
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestContext, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel

from agents_app.registry import Entry
from runs_app.engine.context import RunDeps
from runs_app.engine.threads import run_blocking
from runs_app.exceptions import RunError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Processor:
    """A registered function with the arguments that the agent configures for it."""

    key: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    @classmethod
    def from_entry(cls, entry: Entry, choice: Mapping[str, Any]) -> Processor:
        """Return the processor of a configuration. Members that match parameters of the function are arguments."""
        names = [*entry.schema.get("properties", {})][1:]  # the first parameter is the text
        return cls(entry.key, entry.target, {name: choice[name] for name in names if name in choice})

    async def __call__(self, text: str) -> str:
        """Return the processed text. Raise RunError on failure, because the unprocessed text must not be used."""
        try:
            if inspect.iscoroutinefunction(self.function):
                result = await self.function(text, **self.arguments)
            else:
                result = await run_blocking(self.function, text, **self.arguments)
        except ValidationError as error:
            raise RunError(f"The processor '{self.key}' stopped the run. {' '.join(error.messages)}") from None
        except Exception as error:
            log.exception("The processor '%s' failed.", self.key)
            raise RunError(f"The processor '{self.key}' failed, so the run was stopped.") from error
        if not isinstance(result, str):
            raise RunError(f"The processor '{self.key}' did not return a text, so the run was stopped.")
        return result


async def apply_processors(processors: Iterable[Processor], text: str) -> str:
    for processor in processors:
        text = await processor(text)
    return text


@dataclass
class InputProcessors(AbstractCapability[RunDeps]):
    """Capability that applies processors to the texts of the user. Remembered messages are already processed."""

    processors: tuple[Processor, ...] = ()

    async def before_model_request(
        self, ctx: RunContext[RunDeps], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if ctx.run_step > 1:  # the first request processed the messages of the run
            return request_context
        old = ctx.deps.remembered_count
        messages = [*ctx.messages[:old], *[await self.process(message) for message in ctx.messages[old:]]]
        ctx.messages[:] = messages
        request_context.messages = [*messages]
        return request_context

    async def process(self, message: ModelMessage) -> ModelMessage:
        if not isinstance(message, ModelRequest):
            return message
        if not any(isinstance(part, UserPromptPart) for part in message.parts):
            return message
        parts = [
            replace(part, content=await apply_processors(self.processors, part.content))
            if isinstance(part, UserPromptPart) and isinstance(part.content, str)
            else part
            for part in message.parts
        ]
        return replace(message, parts=parts)


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
        self, messages: Any, model_settings: Any, model_request_parameters: Any, run_context: Any = None
    ) -> AsyncGenerator[StreamedResponse]:
        arguments = (messages, model_settings, model_request_parameters, run_context)
        async with self.wrapped.request_stream(*arguments) as stream:
            async for _ in stream:
                pass
            response = await self.process(stream.get())
        yield ReplayedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)

    async def process(self, response: ModelResponse) -> ModelResponse:
        parts = [
            replace(part, content=await apply_processors(self.processors, part.content))
            if isinstance(part, TextPart)
            else part
            for part in response.parts
        ]
        return replace(response, parts=parts)


class ReplayedResponse(CompletedStreamedResponse):
    """A complete answer as a stream, without its reasoning, which the processors have not seen."""

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        async for event in super()._get_event_iterator():
            if not (isinstance(event, PartStartEvent) and isinstance(event.part, ThinkingPart)):
                yield event
