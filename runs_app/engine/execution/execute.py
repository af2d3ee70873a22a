"""Execution of one run, from its claim to its end.

Imports pydantic-ai, which is heavy. Import this package only where an agent runs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from django.conf import settings

from runs_app.approvals.segments import Segment, load_segment
from runs_app.child_results import RunResult
from runs_app.engine import run_ends
from runs_app.engine.execution.agent import run_agent
from runs_app.engine.execution.ending import record_cancelled, record_failure, record_output
from runs_app.engine.execution.state import RunExecution
from runs_app.engine.journaling.journal import current_journal, describe_step, load_steps
from runs_app.engine.sub_runs import RunTree
from runs_app.engine.thread_pools import run_db
from runs_app.events.durable_recorder import WrittenEvents, load_written_events
from runs_app.exceptions import JournalError, RunError
from runs_app.models import AgentRun
from runs_app.tracing import run_spans

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from runs_app.engine.engine import Engine

MAX_LOST_PROCESSES = 3  # in one step of a durable run, which may be what stops them


async def execute_run(engine: Engine, run: AgentRun, tree: RunTree | None = None) -> RunResult:
    """Execute a run and write its end. A durable run may instead be handed over to another process."""
    async with run_spans.run_span(run) as span:
        return await execute_in_span(engine, run, tree, span)


async def execute_in_span(engine: Engine, run: AgentRun, tree: RunTree | None, span: Span | None) -> RunResult:
    execution = RunExecution(engine, run.pk, execute_run, run.is_durable)
    current_journal.set(None)  # a tool of a durable run may have started this one
    if not run.is_durable:
        engine.writer.register(run.pk)
    elif run.parent_id is not None:
        execution.parent_journal = engine.journals.get(run.parent_id)
    try:
        await run_within_timeout(execution, run, tree)
    except asyncio.CancelledError:
        record_cancelled(execution)
        run_spans.record_status(span, execution.columns)
        raise
    except Exception as error:
        record_failure(execution, error)
    else:
        await record_output(execution, run)
    columns = execution.columns
    run_spans.record_status(span, columns)
    return RunResult(columns.get("status", ""), columns.get("output", ""), columns.get("error", ""))


async def run_within_timeout(execution: RunExecution, run: AgentRun, tree: RunTree | None) -> None:
    # At least a second: a run that other processes have worked on for long still ends with an answer or a reason.
    seconds = max(settings.RUN_TIMEOUT - run.worked_ms / 1000, 1.0)
    try:
        async with asyncio.timeout(seconds) as clock:
            execution.segment = await run_db(load_segment, run) if run.segment else Segment()
            if run.is_durable:
                await open_journal(execution, run)
            position = tree or RunTree.of_new(run)
            if position is None:
                position = await run_db(RunTree.load, run)
            await run_agent(execution, run, position)
    except TimeoutError:
        # Another timeout, such as that of a tool, is an error like any other.
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
    # The first process that claims a run has no steps to replay.
    if run.fence > 1:
        journal.steps = await run_db(load_steps, run.pk, run.segment)
    current_journal.set(journal)
    # A process that stops marks the journals that it finds, and this one is not among them yet.
    journal.is_stopping = execution.engine.is_stopping
    execution.engine.journals[run.pk] = journal
    if run.attempts >= MAX_LOST_PROCESSES:
        steps = " and ".join(map(describe_step, journal.unfinished_steps())) or "a step that was not recorded"
        raise JournalError(
            f"{run_ends.LOST_PROCESS} or lost the database {run.attempts} times in a row at {steps}. "
            "Check what this step does, then run it again."
        )
