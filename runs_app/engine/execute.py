"""Execution of one run, from its claim to its end.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.conf import settings
from pydantic_ai import Agent
from pydantic_ai.run import AgentRun as ModelRun
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from runs_app import scoring, tracing
from runs_app.approvals.deferred_requests import waits_for_calls
from runs_app.approvals.segments import (
    Segment,
    deferred_results,
    dump_conversation,
    load_segment,
    pending_calls,
    processed_parts,
)
from runs_app.approvals.suspending import suspension_chunks
from runs_app.building.experiment_tools import experiment_tools
from runs_app.building.messages import client_tool_definitions, prompt_and_history
from runs_app.building.structured_output import calls_tools, output_types
from runs_app.engine import failures, leases
from runs_app.engine.context import RunDeps
from runs_app.engine.journal import Journal, current_journal, describe_step, load_steps
from runs_app.engine.limits import AnswerGuard, RunLimits, run_limits
from runs_app.engine.start import SIGNALS
from runs_app.engine.sub_runs import RunResult, RunTree
from runs_app.engine.threads import run_blocking, run_db
from runs_app.events.chunks import SUSPENDED_TYPE, Chunk, build_chunk, to_storable_json
from runs_app.events.durable_recorder import DurableRecorder, WrittenEvents, load_written_events
from runs_app.events.recorder import Recorder, usage_payload
from runs_app.exceptions import JournalError, RunError
from runs_app.models import AgentRun
from runs_app.providers.schema_cache import convert_schemas
from runs_app.requests.options import Options, merge_options, model_settings
from runs_app.resolution import ResolvedAgent
from runs_app.thread_signals.delivered import delivered_keys

if TYPE_CHECKING:
    from runs_app.building.agent import BuiltAgent
    from runs_app.engine.engine import Engine

log = logging.getLogger(__name__)

MAX_LOST_PROCESSES = 3  # in one step of a durable run, which may be what stops them


class PreparedRun(NamedTuple):
    """The agent of a run and its dependencies."""

    built: BuiltAgent
    deps: RunDeps


@dataclass
class RunExecution:
    """State of a run while it executes. `columns` are the values that its end writes to the row."""

    engine: Engine
    run_id: UUID
    is_durable: bool = False
    model: str = "The model"
    model_run: ModelRun[RunDeps, Any] | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    segment: Segment = field(default_factory=Segment)
    prepared: PreparedRun | None = None
    journal: Journal | None = None  # of a durable run
    parent_journal: Journal | None = None
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.recorder = Recorder(partial(self.engine.writer.add, self.run_id), str(self.run_id))

    def start_journal(self, segment: int, written: WrittenEvents) -> Journal:
        """Journal the steps of the run from now on, and write no event twice."""
        writer = self.engine.writer
        recorder = DurableRecorder(partial(writer.add, self.run_id), str(self.run_id), written)
        self.recorder = recorder
        self.journal = Journal(self.run_id, segment, writer, recorder)
        return self.journal

    @property
    def is_interrupted(self) -> bool:
        """Return whether another process continues the run, because this one or the parent of the run stops."""
        parent_stops = self.parent_journal is not None and (
            self.parent_journal.is_lost or self.parent_journal.is_stopping
        )
        return self.is_durable and (self.engine.is_stopping or parent_stops)

    @property
    def is_lost(self) -> bool:
        """Return whether another process has claimed the run."""
        return self.journal is not None and self.journal.is_lost

    @property
    def worked_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)

    @property
    def usage(self) -> dict[str, Any]:
        """The tokens used so far, under wire names."""
        return usage_payload(self.model_run.usage) if self.model_run else {}

    @property
    def memory_columns(self) -> dict[str, Any]:
        """The memory that the model was given, and the warnings of its capabilities."""
        if self.prepared is None:
            return {}
        deps, warnings = self.prepared.deps, self.columns.get("warnings", [])
        return {
            "remembered": deps.remembered or None,
            "warnings": [*warnings, *(warning._asdict() for warning in deps.warnings)],
        }

    def close(self, last: Chunk, **columns: Any) -> Awaitable[bool]:
        """Write the last chunk and the end of the run. The result is False if another process owns the run."""
        figures = {"usage": self.usage, "cost": self.model_run.usage.cost} if self.model_run else {}
        text = to_storable_json(self.recorder.text)
        self.columns = {"output": text, **self.columns, **self.memory_columns, **figures, **columns}
        self.recorder.add(last)
        return asyncio.wrap_future(self.engine.writer.close(self.run_id, **self.columns))


async def execute_run(engine: Engine, run: AgentRun, tree: RunTree | None = None) -> RunResult:
    """Execute a run and write its end. A durable run may instead be handed over to another process."""
    async with tracing.run_span(run) as span:
        result = await execute_in_span(engine, run, tree)
        tracing.record_status(span, result.status)
        return result


async def execute_in_span(engine: Engine, run: AgentRun, tree: RunTree | None) -> RunResult:
    execution = RunExecution(engine, run.pk, run.is_durable)
    current_journal.set(None)  # a tool of a durable run may have started this one
    if not run.is_durable:
        engine.writer.register(run.pk)
    elif run.parent_id is not None:
        execution.parent_journal = engine.journals.get(run.parent_id)
    try:
        await run_within_timeout(execution, run, tree)
    except asyncio.CancelledError:
        record_cancelled(execution)
        raise
    except Exception as error:
        record_failure(execution, error)
    else:
        await record_output(execution, run)
    columns = execution.columns
    return RunResult(columns.get("status", ""), columns.get("output", ""), columns.get("error", ""))


async def run_within_timeout(execution: RunExecution, run: AgentRun, tree: RunTree | None) -> None:
    # At least a second: a run that other processes have worked on for long still ends with an answer or a reason.
    seconds = max(settings.RUN_TIMEOUT - run.worked_ms / 1000, 1.0)
    try:
        async with asyncio.timeout(seconds) as clock:
            execution.segment = await run_db(load_segment, run) if run.segment else Segment()
            if run.is_durable:
                await open_journal(execution, run)
            position = tree if tree is not None else await run_db(RunTree.load, run)
            await run_agent(execution, run, position)
    except TimeoutError:
        if clock.expired():
            raise RunError(f"The run took longer than {settings.RUN_TIMEOUT} seconds and was stopped.") from None
        raise


async def open_journal(execution: RunExecution, run: AgentRun) -> None:
    """Start the journal of a durable run with the steps of earlier processes.

    Raise JournalError if the processes of the run were lost again and again.
    """
    written = WrittenEvents()
    if run.last_event_number:
        written = await run_db(load_written_events, run.pk, run.last_event_number)
    journal = execution.start_journal(run.segment, written)
    journal.uses.update(execution.segment.call_uses)
    if run.fence > 1:
        journal.steps = await run_db(load_steps, run.pk, run.segment)
    current_journal.set(journal)
    journal.is_stopping = execution.engine.is_stopping
    execution.engine.journals[run.pk] = journal
    if run.attempts >= MAX_LOST_PROCESSES:
        steps = " and ".join(map(describe_step, journal.unfinished_steps())) or "a step that was not recorded"
        raise JournalError(
            f"{leases.LOST_PROCESS} {run.attempts} times in a row at {steps}. "
            "Check what this step does, then run it again."
        )


# --- Ends of a run


async def record_output(execution: RunExecution, run: AgentRun) -> None:
    """Record the end of the run, or its suspension until people decide calls of tools."""
    result = execution.model_run.result if execution.model_run else None
    if execution.prepared is not None and result is not None and waits_for_calls(result.output):
        try:
            await record_suspension(execution, execution.prepared, run, result)
        except Exception as error:
            record_failure(execution, error)
    else:
        await record_success(execution, run)


async def record_suspension(
    execution: RunExecution, prepared: PreparedRun, run: AgentRun, result: AgentRunResult[Any]
) -> None:
    """Write the calls for which the run waits, with all that the next segment needs. No process executes it then."""
    calls = pending_calls(run, result.output, execution.segment, prepared.built.tools)
    for chunk in await run_db(suspension_chunks, calls):
        execution.recorder.add(chunk)
    conversation = dump_conversation(
        result.all_messages(),
        result.usage,
        steps=execution.recorder.steps,
        remembered_count=prepared.deps.remembered_count,
        call_uses=execution.journal.uses_without(calls) if execution.journal is not None else {},
    )
    await execution.close(
        build_chunk(SUSPENDED_TYPE),
        status=AgentRun.Status.SUSPENDED,
        calls=calls,
        conversation=conversation,
        expires_at=min((call.expires_at for call in calls if call.expires_at is not None), default=None),
        worked_ms=execution.worked_ms,
        output="",
    )


async def record_success(execution: RunExecution, run: AgentRun) -> None:
    finish_reason, usage = execution.recorder.finish_reason, execution.usage
    last = build_chunk(
        "finish",
        stepResult={"reason": finish_reason, "isContinued": False, "warnings": []},
        output={"usage": usage},
        usage=usage,
        metadata={"modelId": execution.model, **execution.recorder.metadata},
        messages={"all": [], "user": [], "nonUser": []},
    )
    is_written = await execution.close(last, status=AgentRun.Status.SUCCEEDED, finish_reason=finish_reason)
    is_answer = (
        is_written and finish_reason != "tool-calls" and run.experiment_id is None
    )  # experiments score themselves
    if is_answer and run.configuration.get("scorers"):
        await run_db(scoring.enqueue_scoring, run)


def record_cancelled(execution: RunExecution) -> None:
    """Record that a user cancelled the run, or that the process stops."""
    if execution.is_lost:
        return
    if execution.is_interrupted:
        hand_over(execution)
    elif execution.engine.is_stopping:
        close_failed(execution, leases.LOST_MESSAGE)
    else:
        execution.close(build_chunk("abort"), status=AgentRun.Status.CANCELLED)


def hand_over(execution: RunExecution) -> None:
    """Queue the durable run for another process."""
    execution.engine.writer.hand_over(execution.run_id, execution.worked_ms)


def record_failure(execution: RunExecution, error: Exception) -> None:
    if execution.is_lost:
        return
    if execution.is_interrupted:
        hand_over(execution)
        return
    message = to_storable_json(failures.failure_message(error, execution.model))
    if failures.is_expected(error):
        # Log the message, not the error itself, which may quote an API key.
        log.warning("Run %s failed: %s", execution.run_id, message)
    else:
        log.error("Run %s failed.", execution.run_id, exc_info=error)
    close_failed(execution, message)


def close_failed(execution: RunExecution, message: str) -> None:
    last = build_chunk("error", error={"name": "Error", "message": message})
    execution.close(last, status=AgentRun.Status.FAILED, finish_reason="error", error=message)


# --- The run itself


async def run_agent(execution: RunExecution, run: AgentRun, tree: RunTree) -> None:
    built: BuiltAgent = await run_db(ResolvedAgent.from_run(run).build)
    execution.model = built.model_name
    execution.recorder.tool_origins = built.tool_origins
    warnings = [*run.warnings, *(warning._asdict() for warning in built.warnings)]
    execution.columns = {"warnings": warnings, "is_demo": built.is_demo}
    record_beginning(execution, run, warnings)
    client_tools = client_tool_definitions(run.input.get("clientTools") or [])
    if client_tools:
        await run_blocking(convert_schemas, built.agent.model, client_tools)
    options = merge_options(built.options, run.input.get("options") or {})
    deps, limits = run_deps(execution, run, tree, options), run_limits(options)
    execution.prepared = PreparedRun(built, deps)
    if execution.journal is not None:
        execution.journal.limits = limits
    async with model_run_context(run, execution.prepared, execution.segment, limits, client_tools) as model_run:
        execution.model_run = model_run
        if isinstance(execution.recorder, DurableRecorder):
            await follow_steps(model_run, execution.recorder)
        else:
            await record_steps(model_run, execution.recorder, limits)
    record_answer_value(execution, model_run.result.output)


def record_answer_value(execution: RunExecution, output: Any) -> None:
    """Record the output of a model run: a text, an object as JSON, or nothing if the run waits."""
    if isinstance(output, str):
        execution.columns["output"] = to_storable_json(output)
    elif isinstance(output, dict):
        answer = to_storable_json(output)
        execution.columns["output"] = json.dumps(answer, ensure_ascii=False)
        execution.recorder.add(build_chunk("object-result", object=answer))


def record_beginning(execution: RunExecution, run: AgentRun, warnings: list[Any]) -> None:
    """Record the start of the run, unless this segment continues it."""
    if run.segment == 0:
        execution.recorder.add(build_chunk("start", id=run.agent_key, messageId=str(run.pk), warnings=warnings))
    else:
        execution.recorder.begin_segment(execution.segment.steps, execution.segment.calls)


def run_deps(execution: RunExecution, run: AgentRun, tree: RunTree, options: Options) -> RunDeps:
    return RunDeps(
        run_id=run.pk,
        agent_key=run.agent_key,
        owner_id=run.owner_id,
        user_id=run.requested_by_id,
        call_sub_agent=tree.sub_agent_caller(execution.engine, run, options, execute_run),
        **memory_deps(run),
        user_name=run.requested_by_name,
        prompt_key=run.input["messages"][-1].get("id", ""),
        is_woken=bool(run.input.get(SIGNALS)),
        instructions=run.filled_instructions,
        agent_path=tree.agent_path,
        options=options,
        root_id=run.root_id,
        request_context={**run.request_context, **run.facts},
        is_experiment="experiment" in run.input,
        is_resumed=run.segment > 0,
        **earlier_segments(execution.segment),
        is_durable=run.is_durable,
        record=execution.recorder.add,
    )


def earlier_segments(segment: Segment) -> dict[str, Any]:
    """Return what a run knows of its earlier segments, as members of its dependencies."""
    return {
        "known_signals": delivered_keys(segment.messages),
        "steps_before": segment.steps,
        "remembered_count": segment.remembered_count,
        "processed_parts": processed_parts(segment.messages),
    }


def memory_deps(run: AgentRun) -> dict[str, Any]:
    """Return the dependencies that say which memory a run uses."""
    return {
        "thread_id": run.thread_id,
        "resource_id": run.resource_id,
        "memory_options": run.input.get("memory") or {},
        "remembered": dict(run.remembered or {}),
    }


def model_run_context(
    run: AgentRun, prepared: PreparedRun, segment: Segment, limits: RunLimits, client_tools: list[ToolDefinition]
) -> Any:
    """Return the run of pydantic-ai as an async context manager. It continues the messages of earlier segments."""
    built, deps = prepared
    prompt, history = (None, segment.messages) if segment.messages else prompt_and_history(run.input["messages"])
    return built.agent.iter(
        prompt,
        output_type=output_types(deps.options),
        message_history=history or None,
        deferred_tool_results=deferred_results(segment),
        deps=deps,
        model_settings=model_settings(deps.options),
        usage=segment.usage,
        usage_limits=limits,
        infer_name=False,
        capabilities=[*(tracing.instrumentation() or ()), *experiment_tools(run.input)] or None,
        # A call of a tool of the API client ends the run.
        toolsets=[ExternalToolset(client_tools, id="client-tools")] if client_tools else None,
    )


async def record_steps(model_run: ModelRun[RunDeps, Any], recorder: Recorder, limits: RunLimits) -> None:
    """Iterate over the steps of the run and record the events of each."""
    async for node in model_run:
        if Agent.is_model_request_node(node):
            recorder.begin_step()
            await record_answer(node, model_run, recorder, limits)
        elif Agent.is_call_tools_node(node):
            recorder.set_answer(node.model_response)
            await record_tool_calls(node, model_run, recorder)
            end_step(node, recorder)


def end_step(node: Any, recorder: Recorder) -> None:
    """Record the end of a step, unless it waits for people. Then the next segment ends it."""
    if not recorder.is_waiting:
        recorder.end_step(node.model_response, calls=calls_tools(node.model_response.tool_calls))


async def record_answer(node: Any, model_run: ModelRun[RunDeps, Any], recorder: Recorder, limits: RunLimits) -> None:
    """Record an answer of the model. Raise UsageLimitExceeded if it has too many tokens."""
    async with node.stream(model_run.ctx) as stream:
        guard = AnswerGuard(limits)
        async for event in stream:
            recorder.record(event)
            guard.count_event(lambda: stream.usage)


async def record_tool_calls(node: Any, model_run: ModelRun[RunDeps, Any], recorder: Recorder) -> None:
    """Record the tool calls of an answer and their results."""
    async with node.stream(model_run.ctx) as events:
        async for event in events:
            recorder.record(event)


async def follow_steps(model_run: ModelRun[RunDeps, Any], recorder: DurableRecorder) -> None:
    """Iterate over the steps of a durable run. The journal records the answers, because replayed ones have events."""
    async for node in model_run:
        if Agent.is_model_request_node(node):
            recorder.begin_step()
            async with node.stream(model_run.ctx) as stream:
                async for _ in stream:
                    pass
        elif Agent.is_call_tools_node(node):
            recorder.set_answer(node.model_response)
            await record_tool_calls(node, model_run, recorder)
            end_step(node, recorder)
