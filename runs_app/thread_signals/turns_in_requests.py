"""The author of the messages of a call, in the requests of a thread with participants.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from pydantic_ai import ModelRequest, RunContext, UserPromptPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestContext

from memory_app.history.turn_markup import Turn, caller_turn
from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import run_db
from runs_app.thread_signals.signal_messages import delivered_payload


@dataclass
class Turns(AbstractCapability[RunDeps]):
    """Capability that says who wrote the messages of a call. Only the model reads it: the history stays as it is."""

    id: str | None = field(default="turns", kw_only=True)

    async def prepare_model_request(
        self, ctx: RunContext[RunDeps], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        deps = ctx.deps
        if deps.thread_id is None:
            return request_context
        turn = await run_db(caller_turn, deps.thread_id, deps.user_id, deps.user_name)
        if turn is not None:
            own = own_prompts(ctx.messages[deps.remembered_count :])
            request_context.messages = [prompts_with_turn(message, own, turn) for message in request_context.messages]
        return request_context


def own_prompts(messages: Collection[ModelMessage]) -> set[int]:
    """Return the ids of the prompts that the caller of a run sent. Those of signals have their authors."""
    return {
        id(part)
        for message in messages
        if isinstance(message, ModelRequest) and delivered_payload(message) is None
        for part in message.parts
        if isinstance(part, UserPromptPart)
    }


def prompts_with_turn(message: ModelMessage, own: Collection[int], turn: Turn) -> ModelMessage:
    """Return a copy of a message whose own prompts are wrapped in a turn."""
    if not isinstance(message, ModelRequest) or not any(id(part) in own for part in message.parts):
        return message
    parts = [
        replace(part, content=turn.wrap(part.content))
        if id(part) in own and isinstance(part, UserPromptPart) and isinstance(part.content, str)
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)
