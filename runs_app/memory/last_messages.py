"""Memory of the last messages of a thread, as a capability of an agent.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from django.db import transaction
from pydantic_ai import (
    AgentRunResult,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RunContext,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.capabilities import AbstractCapability, durable_operation
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests

from agentcms.wire.json_types import JSONValue
from memory_app.history import messages as history
from memory_app.history.messages_for_model import UNPROCESSED
from memory_app.observational.limits import ObservationLimits
from runs_app.approvals.deferred_requests import NOT_EXECUTED_MESSAGE, unexecuted_calls, waits_for_calls
from runs_app.building.messages import missing_result
from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import run_db
from runs_app.memory.open_runs import take_over_for_run
from runs_app.thread_signals.signal_messages import delivered_payload

# Some providers require that a conversation begins with a message of the user.
OBSERVED_PROMPT = "(The notes above are about what was said before.)"


@dataclass
class LastMessages(AbstractCapability[RunDeps]):
    """Memory that sends the last messages of the thread to the model and stores the messages of the run."""

    max_messages: int = 20
    max_tokens: int | None = None  # of these messages together
    read_only: bool = False  # the messages of the run are not stored
    title_from: int | None = None  # the number of messages from which a job writes the title; None for no title
    limits: ObservationLimits | None = None  # of observational memory
    id: str | None = field(default="last-messages", kw_only=True)

    async def before_model_request(
        self, ctx: RunContext[RunDeps], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if ctx.deps.steps_before + ctx.run_step > 1 or ctx.deps.thread_id is None:
            return request_context
        stored = ModelMessagesTypeAdapter.validate_python(await self.recall(ctx))
        before = take_answered(ctx.messages, stored)
        del ctx.messages[: count_repeated(ctx.messages, stored)]
        if stored and is_after_observations(ctx) and not has_user_prompt(stored[0]):
            stored.insert(0, ModelRequest([UserPromptPart(OBSERVED_PROMPT)]))
        remembered = trim_unpaired_calls(stored, ctx.messages)
        ctx.messages[:0] = [*before, *remembered]
        request_context.messages = [*ctx.messages]
        ctx.deps.remembered_count = len(before) + len(remembered)
        ctx.deps.remembered["messages"] = len(remembered)
        return request_context

    @durable_operation(name="recall")
    async def recall(self, ctx: RunContext[RunDeps]) -> list[Any]:
        """Return the stored messages. In a durable run this is a step: the thread may change before a replay."""
        if ctx.deps.thread_id is None:
            return []
        narrowed = ctx.deps.memory_options.get("lastMessages")
        if self.limits is not None and (observed := ctx.deps.observed) is not None:  # all messages after them
            limits = (narrowed, self.limits.block_tokens)
            return await run_db(history.load_messages, ctx.deps.thread_id, *limits, ctx.deps.run_id, observed.last)
        count = self.max_messages if narrowed is None else min(self.max_messages, narrowed)
        return await run_db(history.load_messages, ctx.deps.thread_id, count, self.max_tokens, ctx.deps.run_id)

    async def after_run(self, ctx: RunContext[RunDeps], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Store the new messages of a successful run. One that waits for people stores them after its last segment."""
        is_read_only = self.read_only or ctx.deps.memory_options.get("readOnly", False)
        if ctx.deps.thread_id is not None and not is_read_only and not waits_for_calls(result.output):
            added = messages_since_prompt(result.all_messages()[ctx.deps.remembered_count :])
            added += unexecuted_results(result.output)
            data = ModelMessagesTypeAdapter.dump_python(added, mode="json")
            processed = unprocessed_keys(result.all_messages()[: ctx.deps.remembered_count])
            await run_db(self.save, ctx.deps, ctx.deps.thread_id, data, processed)
        return result

    @transaction.atomic
    def save(self, deps: RunDeps, thread_id: int, data: Sequence[JSONValue], processed: Collection[str]) -> None:
        """Store the messages of a run. It takes over the signals of failed runs that it has processed."""
        take_over_for_run(thread_id, processed, deps.run_id)
        history.save_run_messages(
            thread_id,
            data,
            deps.run_id,
            history.Author(deps.user_id, deps.user_name),
            deps.prompt_key,
            deps.created_at,
            deps.embedder,
            self.title_from if deps.memory_options.get("generateTitle") is not False else None,
            self.limits if deps.memory_options.get("observationalMemory") is not False else None,
        )


def unprocessed_keys(remembered: Iterable[ModelMessage]) -> list[str]:
    """Return the keys of remembered signals whose runs failed."""
    signals = (delivered_payload(message) for message in remembered if (message.metadata or {}).get(UNPROCESSED))
    return [signal["key"] for signal in signals if signal is not None]


def is_after_observations(ctx: RunContext[RunDeps]) -> bool:
    """Return whether observations replace the messages before those that were loaded."""
    return ctx.deps.observed is not None and ctx.deps.observed.last > 0


def unexecuted_results(output: object) -> list[ModelMessage]:
    """Return results for the calls that need approval and were made together with calls of the API client.

    Without a result, their message could not be sent to a model again.
    """
    calls = unexecuted_calls(output) if isinstance(output, DeferredToolRequests) else []
    parts = [ToolReturnPart(call.tool_name, NOT_EXECUTED_MESSAGE, call.tool_call_id) for call in calls]
    return [ModelRequest(parts)] if parts else []


def take_answered(messages: list[ModelMessage], stored: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Reduce messages to results, if they answer the calls with which the stored conversation ends.

    The client sent these results alone, so that a placeholder has their calls, or after the conversation. Return what
    it sent before the stored messages. A call without a result gets one: otherwise no model would accept it.
    """
    calls = [part for part in stored[-1].parts if isinstance(part, ToolCallPart)] if stored else []
    open_ids = {call.tool_call_id for call in calls}
    place = next((index for index, message in enumerate(messages) if call_ids([message]) & open_ids), None)
    if place is None or any(map(has_user_prompt, messages[place:])):
        return []
    known = count_equal(reversed(messages[:place]), reversed(stored[:-1]))
    before = messages[: place - known]
    results = [message for message in messages[place:] if not call_ids([message]) & open_ids]
    missing = [call for call in calls if call.tool_call_id not in result_ids(results)]
    completed = [ModelRequest([missing_result(call) for call in missing])] if missing else []
    messages[:] = [*completed, *results]
    return before


def count_equal(first: Iterable[ModelMessage], second: Iterable[ModelMessage]) -> int:
    """Return with how many messages of the same role and text both begin."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: role_and_text(pair[0]) == role_and_text(pair[1]), pairs))


def count_repeated(messages: Sequence[ModelMessage], stored: Sequence[ModelMessage]) -> int:
    """Return how many messages of the client, from the first on, repeat the end of the stored conversation.

    A client may send a thread and the conversation too. Messages are the same if their role and text are.
    """
    prompt = max((index for index, message in enumerate(messages) if has_user_prompt(message)), default=0)
    sent = [role_and_text(message) for message in messages[:prompt]]
    known = [role_and_text(message) for message in stored]
    for end in range(len(sent), 0, -1):
        length = min(end, len(known))
        if length and sent[end - length : end] == known[-length:]:
            return end
    return 0


def role_and_text(message: ModelMessage) -> tuple[str, str]:
    parts = (part for part in message.parts if isinstance(part, UserPromptPart | TextPart))
    return message.kind, "\n".join(part.content if isinstance(part.content, str) else "" for part in parts)


def trim_unpaired_calls(stored: Sequence[ModelMessage], messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the stored messages that may precede the messages of a run.

    They start with a message of the user and contain no call without a result. Calls that the request repeats are
    left out.
    """
    repeated = call_ids(messages)
    answered = result_ids(stored) | result_ids(messages)
    usable = [*stored]
    while usable and not has_user_prompt(usable[0]):
        usable.pop(0)
    while usable and (open_calls := call_ids(usable[-1:])) and (open_calls & repeated or open_calls - answered):
        usable.pop()
        if open_calls & repeated and usable and has_user_prompt(usable[-1]):
            usable.pop()  # the request repeats the prompt of its calls too
    return usable


def messages_since_prompt(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages from the last prompt on. Earlier messages are history that the client sent."""
    own = [message for message in messages if delivered_payload(message) is None]  # signals are stored when they come
    start = max((index for index, message in enumerate(own) if has_user_prompt(message)), default=0)
    return [
        replace(message, instructions=None) if isinstance(message, ModelRequest) else message
        for message in own[start:]
    ]


def has_user_prompt(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def call_ids(messages: Iterable[ModelMessage]) -> set[str]:
    """Return the ids of the tool calls in messages."""
    parts = [part for message in messages if isinstance(message, ModelResponse) for part in message.parts]
    return {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}


def result_ids(messages: Iterable[ModelMessage]) -> set[str]:
    """Return the ids of the tool calls whose results are in messages."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
