"""Execution of background tasks in the worker that has their job.

Imports pydantic-ai, which is heavy. Import this module only where a task runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import Error as DatabaseError
from pydantic import ValidationError as PydanticValidationError
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, ToolFailed
from pydantic_ai.usage import RunUsage

from agentcms.db.outages import OUTAGE_ERRORS
from agentcms.tracing import spans
from agentcms.wire.json_types import JSONValue
from jobs_app.models import Job, LeaseLost
from jobs_app.runner import failure_message
from runs_app.approvals.lookup import CHILD_RUN_ID
from runs_app.background import endings, steps
from runs_app.background.delivery import GATHERING, deliver_results
from runs_app.building.tools import AgentTool, to_tool_result
from runs_app.engine.context import RunDeps, ToolAttempt
from runs_app.engine.execution.execute import execute_run
from runs_app.engine.sub_runs import ABANDONED, RunTree
from runs_app.engine.thread_pools import run_briefly, run_db
from runs_app.events.stream_chunks import to_storable_json
from runs_app.exceptions import RunInterrupted
from runs_app.models import AgentRun, BackgroundTask
from runs_app.models.background_task import TaskStatus
from runs_app.requests.options import Options, merge_options
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from runs_app.building.agent import BuiltAgent
    from runs_app.engine.engine import Engine

log = logging.getLogger(__name__)

WATCH_INTERVAL = 1.0  # seconds between two checks whether the task was cancelled
TASK_RETRY_DELAY, MAX_TASK_RETRY_DELAY = 1.0, 30.0  # seconds before the first retry, which doubles
TASK_OUTCOME_UNKNOWN = (
    "The worker stopped while this tool worked, and the tool may not be called twice. "
    "The outcome is unknown: check whether the tool has done its work."
)
ASKS_PERSON_MESSAGE = "The tool asks a person, which it cannot do in the background. Call it in the foreground."
MISSING_TOOL_MESSAGE = "The agent no longer has the tool '{name}'."
TOOL_TIMEOUT_MESSAGE = "The tool took longer than {seconds:g} seconds and was stopped."
TOOL_CANCELLED_MESSAGE = "The tool broke off its work, although nobody has cancelled it."


@dataclass(frozen=True)
class TaskOutcome:
    """The end of an attempt of a task."""

    status: str
    result: JSONValue = None
    error: str = ""


async def execute_job(engine: Engine, job: Job) -> None:
    """Execute the task of a job, deliver its result and finish the job. If this process stops, release the job."""
    task_id = UUID(job.parameters["task"])
    work = asyncio.ensure_future(perform_task(engine, task_id))
    watch = asyncio.ensure_future(watch_job(job, task_id, work))
    try:
        await work
        await run_db(job.finish, {"task": str(task_id)})
    except LeaseLost:
        log.warning("The job of background task %s was taken over by another worker.", task_id)
    except (asyncio.CancelledError, RunInterrupted):
        if engine.is_stopping:
            with suppress(LeaseLost, DatabaseError):
                await run_db(job.release)
        else:  # cancelled by a person
            with suppress(LeaseLost):
                await run_db(job.finish, {"task": str(task_id)})
    except OUTAGE_ERRORS as error:  # the lease of the job ends, and beat sends it to a worker again
        log.warning("Background task %s goes on later, because the database was unavailable: %s", task_id, error)
    except Exception as error:  # the maintenance ends the task
        log.exception("Background task %s failed.", task_id)
        with suppress(LeaseLost):
            await run_db(job.fail, failure_message(error))
    finally:
        watch.cancel()


async def watch_job(job: Job, task_id: UUID, work: asyncio.Future[None]) -> None:
    """Renew the lease of a job, and stop the work once its task was cancelled or belongs to another worker."""
    renewed = time.monotonic()
    while True:
        await asyncio.sleep(WATCH_INTERVAL)
        try:
            if time.monotonic() - renewed > settings.JOB_LEASE / 4:
                await run_db(job.report_progress, done=job.done)
                renewed = time.monotonic()
            if await run_db(steps.was_cancelled, task_id):
                work.cancel()
        except LeaseLost:
            work.cancel(ABANDONED)  # the other worker waits for the same child run
            return
        except DatabaseError as error:
            log.warning("The lease of background task %s could not be renewed: %s", task_id, error)


async def perform_task(engine: Engine, task_id: UUID) -> None:
    """Execute a task unless it has ended, then deliver its result together with those that end soon after."""
    task = await run_db(steps.claim_task, task_id)
    if task is not None:
        if task.is_at_most_once and task.attempts > 1:
            outcome = TaskOutcome(TaskStatus.FAILED, error=TASK_OUTCOME_UNKNOWN)
        else:
            attributes: spans.Attributes = {"agentcms.task.id": str(task_id), "agentcms.task.attempt": task.attempts}
            with spans.span(f"background task {task.tool}", attributes, traceparent=task.traceparent):
                outcome = await try_until_done(engine, task)
        await save_outcome(task, outcome)
    run_id = await run_db(steps.run_with_due_result, task_id)
    if run_id is not None:
        await asyncio.sleep(GATHERING.total_seconds())
        await run_db(deliver_results, run_id)


async def save_outcome(task: BackgroundTask, outcome: TaskOutcome) -> None:
    """Store the end of a task. While the database is unavailable, wait: another attempt would call the tool again."""
    while outcome.status != TaskStatus.SUSPENDED:  # otherwise the task was suspended with its child run
        try:
            await run_db(endings.end_task, task, outcome.status, result=outcome.result, error=outcome.error)
            return
        except OUTAGE_ERRORS as error:  # the watch of the job stops this once another worker has the task
            log.warning("The end of background task %s could not be stored yet: %s", task.pk, error)
            await asyncio.sleep(WATCH_INTERVAL)


async def try_until_done(engine: Engine, task: BackgroundTask) -> TaskOutcome:
    """Return the outcome of a task after as many retries as it may have."""
    delay = TASK_RETRY_DELAY
    while True:
        outcome = await attempt(engine, task)
        if outcome.status != TaskStatus.FAILED or task.retries >= task.max_retries:
            return outcome
        if not await run_db(steps.count_retry, task):
            return outcome  # which is not stored, because another worker has the task
        await asyncio.sleep(delay)
        delay = min(delay * 2, MAX_TASK_RETRY_DELAY)


async def attempt(engine: Engine, task: BackgroundTask) -> TaskOutcome:
    """Call the tool of a task once."""
    seconds = task.timeout_ms / 1000
    try:
        async with asyncio.timeout(seconds) as clock:
            return TaskOutcome(TaskStatus.COMPLETED, await call_task_tool(engine, task))
    except TimeoutError:
        if not clock.expired():
            raise
        return TaskOutcome(TaskStatus.TIMED_OUT, error=TOOL_TIMEOUT_MESSAGE.format(seconds=seconds))
    except asyncio.CancelledError:
        if is_work_cancelled():
            raise
        return failed(TOOL_CANCELLED_MESSAGE)  # raised by the tool, such as by a client that lost its connection
    except CallDeferred as deferral:
        is_child = CHILD_RUN_ID in (deferral.metadata or {})
        return TaskOutcome(TaskStatus.SUSPENDED) if is_child else failed(ASKS_PERSON_MESSAGE)
    except ApprovalRequired:
        return failed(ASKS_PERSON_MESSAGE)
    except (ToolFailed, ModelRetry) as error:
        return failed(error.message)
    except PydanticValidationError as error:
        return failed(f"The arguments of the call are not valid: {error.errors()[0]['msg']}")
    except ValidationError as error:  # the agent cannot be built
        return failed(" ".join(error.messages))


def is_work_cancelled() -> bool:
    """Return whether the work was cancelled: by a person, or because this process stops."""
    work = asyncio.current_task()
    return work is None or work.cancelling() > 0


def failed(message: str) -> TaskOutcome:
    # A tool may quote what a database refuses, such as a NUL.
    return TaskOutcome(TaskStatus.FAILED, error=str(to_storable_json(message)))


async def call_task_tool(engine: Engine, task: BackgroundTask) -> object:
    """Return the result of the tool of a task."""
    run = await run_db(load_run, task.run_id)
    built: BuiltAgent = await run_db(ResolvedAgent.from_run(run).build)
    tool: AgentTool | None = built.tools.get(task.tool)
    if tool is None:
        raise ToolFailed(MISSING_TOOL_MESSAGE.format(name=task.tool))
    tree = await run_db(RunTree.load, run)
    context = build_context(engine, task, run, tree, built)
    arguments = tool.function_schema.validator.validate_python(task.arguments)
    return await run_briefly(to_tool_result, await tool.function_schema.call(arguments, context))


def load_run(run_id: UUID) -> AgentRun:
    """Return a run with its configuration, which the event loop must not read."""
    run = AgentRun.objects.get(pk=run_id)
    run.read_configuration()
    return run


def build_context(
    engine: Engine, task: BackgroundTask, run: AgentRun, tree: RunTree, built: BuiltAgent
) -> RunContext[RunDeps]:
    """Return the context in which the tool of a task is called, as in the run itself."""
    return RunContext(
        deps=build_deps(engine, task, run, tree, merge_options(built.options, run.input.get("options") or {})),
        model=built.agent.model,
        usage=RunUsage(),
        tool_call_id=task.call_key,
        tool_name=task.tool,
        tool_call_approved=True,  # a person was asked before the dispatch
    )


def build_deps(engine: Engine, task: BackgroundTask, run: AgentRun, tree: RunTree, options: Options) -> RunDeps:
    return RunDeps(
        run_id=run.pk,
        agent_key=run.agent_key,
        owner_id=run.owner_id,
        user_id=run.requested_by_id,
        call_sub_agent=tree.sub_agent_caller(engine, run, options, execute_run, in_task=True),
        thread_id=run.thread_id,
        resource_id=run.resource_id,
        user_name=run.requested_by_name,
        instructions=run.filled_instructions,
        agent_path=tree.agent_path,
        options=options,
        root_id=run.root_id,
        request_context=run.context_with_facts,
        tool_attempts={task.call_key: ToolAttempt(task.attempts + task.retries, f"{run.pk}:{task.call_key}")},
        task_id=task.pk,
        report_progress=partial(steps.report_progress, task.pk),
    )
