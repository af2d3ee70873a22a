"""Functions that read or change texts before and after the model, as capabilities of an agent.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
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
    """A registered function with what the agent says to it beside the text."""

    key: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    @classmethod
    def of(cls, entry: Entry, choice: Mapping[str, Any]) -> Processor:
        """What an agent chose: other members of its object are arguments, where the function has such."""
        names = [*entry.schema.get("properties", {})][1:]  # the first is the text
        return cls(entry.key, entry.target, {name: choice[name] for name in names if name in choice})

    async def __call__(self, text: str) -> str:
        """The text it makes of a text. Raises RunFault: what was not processed goes nowhere."""
        try:
            if inspect.iscoroutinefunction(self.function):
                made = await self.function(text, **self.arguments)
            else:
                made = await run_blocking(self.function, text, **self.arguments)
        except ValidationError as error:
            raise RunError(f"The processor '{self.key}' stopped the run. {' '.join(error.messages)}") from None
        except Exception as error:
            log.exception("The processor '%s' failed.", self.key)
            raise RunError(f"The processor '{self.key}' failed, so the run was stopped.") from error
        if not isinstance(made, str):
            raise RunError(f"The processor '{self.key}' did not make a text, so the run was stopped.")
        return made


async def process(processors: Iterable[Processor], text: str) -> str:
    for processor in processors:
        text = await processor(text)
    return text


@dataclass
class InputProcessors(AbstractCapability[RunDeps]):
    """Lets the model see the user's texts as the processors leave them; what was remembered went through before."""

    processors: tuple[Processor, ...] = ()

    async def before_model_request(
        self, ctx: RunContext[RunDeps], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if ctx.run_step > 1:  # later requests have what the first one left
            return request_context
        old = ctx.deps.remembered_count
        messages = [*ctx.messages[:old], *[await self.processed(message) for message in ctx.messages[old:]]]
        ctx.messages[:] = messages
        request_context.messages = [*messages]
        return request_context

    async def processed(self, message: ModelMessage) -> ModelMessage:
        if not isinstance(message, ModelRequest) or not any(
            isinstance(each, UserPromptPart) for each in message.parts
        ):
            return message
        parts = [
            replace(part, content=await process(self.processors, part.content))
            if isinstance(part, UserPromptPart) and isinstance(part.content, str)
            else part
            for part in message.parts
        ]
        return replace(message, parts=parts)


@dataclass
class OutputProcessors(AbstractCapability[RunDeps]):
    """Lets everybody see the model's texts as the processors leave them."""

    processors: tuple[Processor, ...] = ()

    def get_wrapper_model(self, model: Model) -> Model:
        return ProcessedModel(model, self.processors)


class ProcessedModel(WrapperModel):
    """A model whose answer is held back until all of it was processed: nothing else is ever streamed."""

    def __init__(self, wrapped: Model, processors: tuple[Processor, ...]) -> None:
        super().__init__(wrapped)
        self.processors = processors

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return await self.processed(await self.wrapped.request(*args, **kwargs))

    @asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, model_request_parameters: Any, run_context: Any = None
    ) -> AsyncGenerator[StreamedResponse]:
        asked = (messages, model_settings, model_request_parameters)
        async with self.wrapped.request_stream(*asked, run_context) as stream:
            async for _ in stream:
                pass
            response = await self.processed(stream.get())
        yield Answered(response, model_request_parameters=model_request_parameters, replay_events=True)

    async def processed(self, response: ModelResponse) -> ModelResponse:
        parts = [
            replace(part, content=await process(self.processors, part.content)) if isinstance(part, TextPart) else part
            for part in response.parts
        ]
        return replace(response, parts=parts)


class Answered(CompletedStreamedResponse):
    """A whole answer as a stream, without what the model thought: no processor has seen that."""

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        async for event in super()._get_event_iterator():
            if not (isinstance(event, PartStartEvent) and isinstance(event.part, ThinkingPart)):
                yield event
