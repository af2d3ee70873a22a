"""Memory of the last messages of a thread, as a capability of an agent.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import (
    AgentRunResult,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RunContext,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestContext

from runs_app.engine.context import RunDeps
from runs_app.engine.threads import run_db
from runs_app.memory import threads


@dataclass
class LastMessages(AbstractCapability[RunDeps]):
    """Lets the model see the last messages of the thread, and keeps what a run adds to it."""

    most: int = 20

    async def before_model_request(
        self, ctx: RunContext[RunDeps], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if ctx.run_step > 1 or ctx.deps.thread_id is None:
            return request_context
        kept = ModelMessagesTypeAdapter.validate_python(await run_db(threads.recall, ctx.deps.thread_id, self.most))
        if brings_results_alone(ctx.messages, kept):
            del ctx.messages[0]
        remembered = trim_unpaired_calls(kept, ctx.messages)
        ctx.messages[:0] = remembered
        request_context.messages = [*ctx.messages]
        ctx.deps.remembered_count = len(remembered)
        return request_context

    async def after_run(self, ctx: RunContext[RunDeps], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Keep what was said since the last thing that was remembered, once the run is through."""
        if ctx.deps.thread_id is not None:
            said = new(result.all_messages()[ctx.deps.remembered_count :])
            data = ModelMessagesTypeAdapter.dump_python(said, mode="json")
            await run_db(threads.remember, ctx.deps.thread_id, data, ctx.deps.run_id)
        return result


def brings_results_alone(said: Sequence[ModelMessage], remembered: Iterable[ModelMessage]) -> bool:
    """Whether the conversation goes on with results of calls that the thread has: what stands for them can go."""
    return bool(said) and not any(map(is_prompt, said)) and bool(calls(said[:1]) & calls(remembered))


def trim_unpaired_calls(remembered: Sequence[ModelMessage], said: Sequence[ModelMessage]) -> list[ModelMessage]:
    """What can stand before the messages of a run: from a user's words on, and no call without its result.

    A caller that brings results brings the calls too; those are not remembered twice.
    """
    brought = calls(said)
    answered = results(remembered) | results(said)
    kept = [*remembered]
    while kept and not is_prompt(kept[0]):
        kept.pop(0)
    while kept and (open_calls := calls(kept[-1:])) and (open_calls & brought or open_calls - answered):
        kept.pop()
        if open_calls & brought and kept and is_prompt(kept[-1]):
            kept.pop()  # the words that the calls answered were brought along
    return kept


def new(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """What a run added: from the last words of the user on, whatever history the caller sent before them."""
    last = max((place for place, message in enumerate(messages) if is_prompt(message)), default=0)
    return [
        replace(message, instructions=None) if isinstance(message, ModelRequest) else message
        for message in messages[last:]
    ]


def is_prompt(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def calls(messages: Iterable[ModelMessage]) -> set[str]:
    """The ids of the tools that were called."""
    parts = [part for message in messages if isinstance(message, ModelResponse) for part in message.parts]
    return {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}


def results(messages: Iterable[ModelMessage]) -> set[str]:
    """The ids of the calls that have a result."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
