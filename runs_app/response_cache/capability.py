"""The response cache, as a capability of an agent and a wrapper of its model.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from runs_app.building.structured_output import calls_tools, find_answer_issues
from runs_app.building.tool_names import OUTPUT_TOOL
from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import run_briefly
from runs_app.events.recorder import CACHE_HIT, reports_finish_reason
from runs_app.requests.options import Options
from runs_app.response_cache.flights import Flight, flight_of
from runs_app.response_cache.key import CacheableRequest, NotCacheable, cache_key
from runs_app.response_cache.options import AgentCacheOptions, CacheOptions, has_call_options, merge_cache_options
from runs_app.response_cache.store import (
    NextAct,
    answer_looked_up,
    read_cached_answer,
    release_lock,
    renew_lock,
    store_answer,
    take_turn,
)

POLL_INTERVAL = 0.05  # seconds between reads of an answer for which another request has asked
MAX_WAIT = 120  # seconds for the answer to an equal request
KINDS = (TextPart, ThinkingPart, ToolCallPart)  # of the parts of an answer that may be stored
RENEW_INTERVAL = 5.0  # seconds; see LOCK_SECONDS


@dataclass
class ResponseCache(AbstractCapability[RunDeps]):
    """Capability that answers a request to the model like an equal one before it.

    `identity` identifies the provider and the model. With `requires_finish_reason`, an answer without one counts as
    interrupted, as in `StepPolicy`.
    """

    options: AgentCacheOptions
    identity: str
    requires_finish_reason: bool = False

    def get_wrapper_model(self, model: Model) -> Model:
        return CachedModel(model, self)


class CachedModel(WrapperModel):
    """Model wrapper that returns the stored answer to an equal request, as a stream with one piece of text."""

    def __init__(self, wrapped: Model, capability: ResponseCache) -> None:
        super().__init__(wrapped)
        self.capability = capability

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        arguments = (messages, model_settings, model_request_parameters, run_context)
        lookup = self.start_lookup(*arguments)
        if lookup is None:
            async with self.wrapped.request_stream(*arguments) as stream:
                yield stream
            return
        async with lookup.answer_or_turn() as answer:
            if answer is not None:
                yield CompletedStreamedResponse(
                    answer, model_request_parameters=model_request_parameters, replay_events=True
                )
                return
            async with self.wrapped.request_stream(*arguments) as stream:
                yield stream
                # Not reached if the reader left early or the request failed.
                await lookup.store(stream.get())

    def start_lookup(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        parameters: ModelRequestParameters,
        run_context: RunContext[RunDeps] | None,
    ) -> Lookup | None:
        """Return the lookup of the answer to a request, or None if it is not cached."""
        if run_context is None or not is_cacheable_run(run_context.deps):
            return None
        deps = run_context.deps
        options = merge_cache_options(self.capability.options, deps.request_context)
        request = CacheableRequest(run_context.run_step, messages, model_settings, parameters)
        try:
            key = cache_key(deps, options, self.capability.identity, request)
        except NotCacheable:
            return None
        deps.answer_keys.append(key)
        return Lookup(key, options, self.capability.requires_finish_reason, deps.options)


def is_cacheable_run(deps: RunDeps) -> bool:
    """Return False for a run that waited for people, and for an experiment that does not choose the cache.

    An experiment measures what the model answers now.
    """
    return not deps.is_resumed and (not deps.is_experiment or has_call_options(deps.request_context))


@dataclass
class Lookup:
    """The lookup of one answer."""

    key: str
    options: CacheOptions
    requires_finish_reason: bool
    run_options: Options
    stored: str = ""  # the JSON text of the answer that was stored

    @asynccontextmanager
    async def answer_or_turn(self) -> AsyncGenerator[ModelResponse | None]:
        """Yield the stored answer. Yield None if the caller shall ask the model: then equal requests wait for it."""
        if self.options.bust:
            answer_looked_up.send(CachedModel, result="bust")
            yield None
            return
        flight = flight_of(self.key)
        async with flight.lock:
            answer, turn = await self.wait_for_answer(flight)
            answer_looked_up.send(CachedModel, result="miss" if answer is None else "hit")
            if turn in (NextAct.FIRST, NextAct.UNCACHED):
                renewal = asyncio.create_task(self.keep_lock(turn))
                try:
                    yield None
                finally:
                    renewal.cancel()
                    # Shielded, or a cancelled run would leave those that wait until its lock expires.
                    await asyncio.shield(self.end_turn(flight, turn))
                return
        yield answer

    async def wait_for_answer(self, flight: Flight) -> tuple[ModelResponse | None, NextAct]:
        """Return the stored answer, or None when this request may ask the model."""
        if flight.is_finished:
            answer = parse_answer(flight.text) if flight.text else None
            return answer, NextAct.OWN if answer is None else NextAct.WAIT
        deadline = time.monotonic() + MAX_WAIT
        while True:
            text = await run_briefly(read_cached_answer, self.key)
            if text is not None and (answer := parse_answer(text)) is not None:
                return answer, NextAct.WAIT
            turn = await run_briefly(take_turn, self.key)
            # After the deadline this request asks the model too, beside the one that holds the lock.
            if turn is not NextAct.WAIT or time.monotonic() > deadline:
                return None, turn
            await asyncio.sleep(POLL_INTERVAL)

    async def keep_lock(self, turn: NextAct) -> None:
        """Keep the lock while the model answers. A process that is killed leaves it for a few seconds only."""
        while turn is NextAct.FIRST:
            await asyncio.sleep(RENEW_INTERVAL)
            await run_briefly(renew_lock, self.key)

    async def end_turn(self, flight: Flight, turn: NextAct) -> None:
        """Let the requests that wait for the answer have it, or ask the model themselves."""
        if turn is NextAct.UNCACHED:
            flight.finish(self.stored, self.options.seconds)
        else:
            await run_briefly(release_lock, self.key, is_stored=bool(self.stored))

    async def store(self, response: ModelResponse) -> None:
        """Store a complete answer."""
        if self.is_storable(response) and await self.fits_schema(response):
            text = ModelMessagesTypeAdapter.dump_json([response]).decode()
            if await run_briefly(store_answer, self.key, text, self.options.seconds):
                self.stored = text

    def is_storable(self, response: ModelResponse) -> bool:
        """Return whether an answer is complete and may be repeated. A repeated tool call would act again."""
        if response.state != "complete" or (self.requires_finish_reason and not reports_finish_reason(response)):
            return False
        calls = response.tool_calls
        # The object of a structured answer is written as a call too, but repeating it changes nothing.
        if calls_tools(calls) and not self.options.stores_tool_calls:
            return False
        reasons = ("stop", None, "tool_call") if calls else ("stop", None)
        has_text = any(not isinstance(part, TextPart) or part.content for part in response.parts)
        return has_text and response.finish_reason in reasons and all(isinstance(p, KINDS) for p in response.parts)

    async def fits_schema(self, response: ModelResponse) -> bool:
        """Return whether the object in an answer fits the schema of its run. Else the run asks again or fails."""
        for call in response.tool_calls:
            if call.tool_name != OUTPUT_TOOL:
                continue
            try:
                answer = call.args_as_dict()
            except (ValueError, AssertionError):  # no JSON, or no object
                return False
            if await find_answer_issues(self.run_options, answer):
                return False
        return True


def parse_answer(text: str) -> ModelResponse | None:
    """Return a stored answer without its usage, which was paid before, or None if another release stored it."""
    try:
        (message,) = ModelMessagesTypeAdapter.validate_json(text)
    except (ValidationError, ValueError):
        return None
    if not isinstance(message, ModelResponse):
        return None
    return replace(message, usage=RequestUsage(), metadata={**(message.metadata or {}), **CACHE_HIT})
