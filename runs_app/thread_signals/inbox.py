"""Delivery of signals to a run that is active, as a capability of its agent.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import ModelRequest, RunContext, UserPromptPart
from pydantic_ai.capabilities import AbstractCapability, durable_operation
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests
from pydantic_graph import End

from memory_app.history.messages_for_model import PAYLOAD
from memory_app.history.thread_signals import take_signals
from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import run_db
from runs_app.requests.options import max_steps
from runs_app.thread_signals.signal_messages import SignalPayload, delivered_text, signal_message


@dataclass
class Inbox(AbstractCapability[RunDeps]):
    """Capability that gives a run the signals of its thread, before each request and after the last answer."""

    id: str | None = field(default="inbox", kw_only=True)

    async def before_model_request(
        self, ctx: RunContext[RunDeps], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        signals = await self.take_new(ctx)
        if signals and ctx.deps.is_woken and ctx.deps.steps_before + ctx.run_step == 1:
            replace_prompt(ctx, signals.pop(0))
        for signal in signals:
            ctx.enqueue(signal_message(signal))
        return request_context

    async def after_node_run(self, ctx: RunContext[RunDeps], *, node: Any, result: Any) -> Any:
        """Let the run continue if signals came while the last answer was made."""
        if isinstance(result, End) and not isinstance(result.data.output, DeferredToolRequests) and may_go_on(ctx):
            for signal in await self.take_new(ctx):
                ctx.enqueue(signal_message(signal))
        return result

    async def take_new(self, ctx: RunContext[RunDeps]) -> list[SignalPayload]:
        """Take the signals that wait, and note them as known."""
        if ctx.deps.thread_id is None:
            return []
        # Sorted, because a replay in another process must ask for the recorded step with the same argument.
        signals = await self.take(ctx, sorted(ctx.deps.known_signals))
        ctx.deps.known_signals.update(signal["key"] for signal in signals)
        return [*signals]

    @durable_operation(name="take")
    async def take(self, ctx: RunContext[RunDeps], known: list[str]) -> list[Any]:
        """Return signals. In a durable run this is a step: a replay must give the model the same ones."""
        if ctx.deps.thread_id is None:
            return []
        return await run_db(take_signals, ctx.deps.thread_id, ctx.deps.run_id, known)


def may_go_on(ctx: RunContext[RunDeps]) -> bool:
    """Return True if the run may make another request. Otherwise the signals wait for the next run."""
    return not ctx.deps.is_stopped and ctx.usage.requests < max_steps(ctx.deps.options)


def replace_prompt(ctx: RunContext[RunDeps], signal: SignalPayload) -> None:
    """Put a signal in the place of the prompt of a run that signals have woken."""
    request = ctx.messages[-1]
    if isinstance(request, ModelRequest):
        # In place, because the history of the run and the request share their messages.
        prompts = [part for part in request.parts if not isinstance(part, UserPromptPart)]
        request.parts = [*prompts, UserPromptPart(delivered_text(signal))]
        request.metadata = {**(request.metadata or {}), PAYLOAD: signal}
