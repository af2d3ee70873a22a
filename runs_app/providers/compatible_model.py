"""The model of servers with the Chat Completions API of OpenAI, which check less of what they send than OpenAI.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from openai.types.chat.chat_completion_chunk import Choice, ChoiceDeltaToolCall
from pydantic_ai import UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponseStreamEvent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse

log = logging.getLogger(__name__)

FIRST_OWN_INDEX = 1_000_000  # of calls that have the index of another one

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


@dataclass
class CompatibleStream(OpenAIStreamedResponse):
    """A streamed answer whose values may be of any type, and whose tool calls may have equal indexes."""

    # By the index that the server gives, the ID of the last call with it, and its own index.
    _last_calls: dict[int, tuple[str, int]] = field(default_factory=dict, init=False)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        with unreadable_answers():
            async for event in super()._get_event_iterator():
                yield event

    def _map_tool_call_delta(self, choice: Choice) -> Iterable[ModelResponseStreamEvent]:
        for call in choice.delta.tool_calls or []:
            if call.id is not None:
                call.id = str(call.id)  # some servers number their calls
            if isinstance(call.index, int):
                call.index = self._own_index(call, call.index)
        return super()._map_tool_call_delta(choice)

    def _own_index(self, call: ChoiceDeltaToolCall, given: int) -> int:
        """Return an index that no other call of the answer has. Some servers give all calls the first one."""
        last_id, index = self._last_calls.get(given, ("", given))
        has_name = call.function is not None and bool(call.function.name)
        if last_id and call.id and call.id != last_id and has_name:
            index = FIRST_OWN_INDEX + len(self._parts_manager.get_parts())
        if call.id:
            self._last_calls[given] = (call.id, index)
        return index


class CompatibleModel(OpenAIChatModel):
    """A model that tells answers which cannot be read from errors of this application."""

    async def _process_streamed_response(self, *arguments: Any, **more: Any) -> OpenAIStreamedResponse:
        with unreadable_answers():
            return await super()._process_streamed_response(*arguments, **more)

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return CompatibleStream
