"""The model of servers with the Chat Completions API of OpenAI, which check less of what they send than OpenAI.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from openai.types.chat.chat_completion_chunk import Choice
from pydantic_ai import UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponseStreamEvent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse

log = logging.getLogger(__name__)

# The client passes values of any type on. Reading them raises one of these.
READING_ERRORS = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError)
UNREADABLE_MESSAGE = "It does not follow the Chat Completions API. Check its server."


@contextmanager
def unreadable_answers() -> Iterator[None]:
    """Report an answer with values of other types than the API has. Otherwise users would read of a bug of ours."""
    try:
        yield
    except READING_ERRORS as error:
        log.warning("The answer of a model cannot be read.", exc_info=error)
        raise UnexpectedModelBehavior(UNREADABLE_MESSAGE) from error


class CompatibleStream(OpenAIStreamedResponse):
    """A streamed answer whose values may be of any type."""

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        with unreadable_answers():
            async for event in super()._get_event_iterator():
                yield event

    def _map_tool_call_delta(self, choice: Choice) -> Iterable[ModelResponseStreamEvent]:
        for call in choice.delta.tool_calls or []:
            if call.id is not None:
                call.id = str(call.id)  # some servers number their calls
        return super()._map_tool_call_delta(choice)


class CompatibleModel(OpenAIChatModel):
    """A model that tells answers which cannot be read from errors of this application."""

    async def _process_streamed_response(self, *arguments: Any, **more: Any) -> OpenAIStreamedResponse:
        with unreadable_answers():
            return await super()._process_streamed_response(*arguments, **more)

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return CompatibleStream
