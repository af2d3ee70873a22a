"""The connection of the journal to pydantic-ai: the capability that executes each step of a durable run once.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built or runs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    BoundDurableOperation,
    DurabilityEngineSpec,
    DurableOperation,
    DurableOperationBackend,
    DurableOperationId,
    JournalCallableOperationBackend,
    ResultCodec,
    RoleBasedOperationConfig,
)
from pydantic_ai.messages import AgentStreamEvent, ModelMessage
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from runs_app.engine.context import RunDeps
from runs_app.engine.journaling.journal import StepBody, current_journal
from runs_app.engine.journaling.step_input import identify_step
from runs_app.engine.usage_limits import AnswerGuard
from runs_app.exceptions import JournalError

OperationParams = TypeVar("OperationParams")
WireValue = TypeVar("WireValue")
StepResult = TypeVar("StepResult")


class StepResultCodec(ResultCodec[StepResult]):
    """A codec that raises an error of ours for a result that this release cannot read.

    The model would be asked to correct pydantic's ValidationError.
    """

    def __init__(self, codec: ResultCodec[StepResult]) -> None:
        self.codec = codec

    def dump(self, value: StepResult) -> object:
        return self.codec.dump(value)

    def load(self, payload: object) -> StepResult:
        try:
            return self.codec.load(payload)
        except (ValidationError, TypeError) as error:
            raise JournalError("The result of a step was recorded by a release that this one cannot read.") from error


class JournalBackend(JournalCallableOperationBackend[dict[str, Any]]):
    """A backend that executes each operation of pydantic-ai as a step of the current journal."""

    def bind(
        self, operation: DurableOperation[OperationParams, WireValue, StepResult]
    ) -> BoundDurableOperation[OperationParams, WireValue, StepResult]:
        return super().bind(replace(operation, result_codec=StepResultCodec(operation.result_codec)))

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: StepBody,
        cache_key: tuple[object, ...],
        config: dict[str, Any],
    ) -> object:
        journal = current_journal.get()
        if journal is None:  # every agent has the capability, also in a run that is not durable
            return await body()
        return await journal.execute_step(identify_step(operation_id, cache_key), body)


async def record_model_events(ctx: RunContext[RunDeps], events: AsyncIterable[AgentStreamEvent]) -> None:
    """Record the events of an answer while it streams. A replayed answer does not stream."""
    journal = current_journal.get()
    if journal is None or journal.limits is None:
        return
    guard = AnswerGuard(journal.limits)
    stream = journal.stream
    async for event in events:
        journal.recorder.record(event)
        # `ctx.usage` has the earlier requests alone: pydantic-ai adds an answer when it has ended.
        if stream is not None:
            guard.count_event(lambda: ctx.usage + stream.usage)


class ObservedModel(WrapperModel):
    """Model wrapper that gives the journal the stream of an answer, whose tokens it counts."""

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
            if (journal := current_journal.get()) is not None:
                journal.stream = stream
            yield stream


class Journaled(BaseDurabilityCapability[RunDeps]):
    """Capability of every agent that journals its steps in a durable run, and does nothing in any other run."""

    engine_spec = DurabilityEngineSpec(
        engine_name="Agent CMS",
        durable_unit_noun="step",
        durable_container_noun="run",
        codec=JSON_CODEC,
        journal_discovery=False,  # a list of tools is no step: a run that continues reads it again
    )

    def __init__(self) -> None:
        super().__init__(event_stream_handler=record_model_events)

    @property
    def in_durable_context(self) -> bool:
        return current_journal.get() is not None

    def get_wrapper_model(self, model: Model) -> Model | None:
        return ObservedModel(model) if self.in_durable_context else None

    @property
    def has_wrap_run_event_stream(self) -> bool:
        return False  # the handler only gets the events of an answer, inside its step

    def wrap_run_event_stream(
        self, ctx: RunContext[RunDeps], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterable[AgentStreamEvent]:
        return stream

    def get_durable_operation_backend(self) -> DurableOperationBackend[Any]:
        config: RoleBasedOperationConfig[dict[str, Any]] = RoleBasedOperationConfig(
            model={}, event={}, capability={}, tool={}
        )
        return JournalBackend(agent_name=self.name, config=config)
