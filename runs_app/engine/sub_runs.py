"""Child runs: runs of agents that other agents use as tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from agentcms.ids import derive_uuid
from agents_app.configuration.references import missing_reference_message
from agents_app.configuration.schema import ConfigError
from agents_app.editing.archive_guard import AgentArchived
from agents_app.models import Agent
from runs_app.child_results import (
    AGENT_STOPPED_MESSAGE,
    DELETED_AGENT_MESSAGE,
    RunResult,
    SubAgentError,
    child_output,
)
from runs_app.engine import leases, run_ends
from runs_app.engine.context import CallSubAgent
from runs_app.engine.journaling.journal import interrupting_outages
from runs_app.engine.start.sub_run import start_child, start_durable_child
from runs_app.engine.thread_pools import run_db
from runs_app.exceptions import ChildSuspended, RunInterrupted
from runs_app.models import AgentRun
from runs_app.requests.options import Options
from runs_app.resolution import stored_agents

if TYPE_CHECKING:
    from runs_app.engine.engine import Engine

INHERITED_OPTIONS = ("requireToolApproval",)  # of a call, by the child runs
MAX_SUB_RUNS = 50  # in one tree of runs, at all depths together
ABANDONED = "abandoned"  # the message of a cancellation that leaves child runs to another process
CHILD_POLL_INTERVAL = 0.25  # seconds between reads of a child run that another process executes


@dataclass
class SubRunCounter:
    """The number of child runs in a tree."""

    count: int = 0


@dataclass(frozen=True)
class RunTree:
    """The position of a run in its tree of runs."""

    agent_path: tuple[str, ...]  # the agents from the root run to this one
    counter: SubRunCounter = field(default_factory=SubRunCounter)
    used_mocks: set[int] = field(default_factory=set)  # by number; each mock of an experiment's item answers once

    @classmethod
    def of_new(cls, run: AgentRun) -> RunTree | None:
        """Return the position of a run that begins and has no parent, or None for any other run."""
        return cls((run.agent_key,)) if run.parent_id is None and run.segment == 0 else None

    @classmethod
    def load(cls, run: AgentRun) -> RunTree:
        """Return the position of a run whose parents this process does not execute."""
        if new := cls.of_new(run):
            return new
        path: tuple[str, ...] = (run.agent_key,)
        parent_id = run.parent_id
        while parent_id is not None:
            parent = AgentRun.objects.only("agent_key", "parent_id").get(pk=parent_id)
            path, parent_id = (parent.agent_key, *path), parent.parent_id
        count = AgentRun.objects.filter(root_id=run.root_id).exclude(parent=None).count()
        return cls(path, SubRunCounter(count))

    def child(self, key: str) -> RunTree:
        return RunTree((*self.agent_path, key), self.counter, self.used_mocks)

    def reject_sub_agent(self, key: str) -> None:
        """Raise SubAgentError if the agent would call itself or the tree is full."""
        if key in self.agent_path:
            raise SubAgentError(f"The agent '{key}' cannot be called from here: it would call itself.")
        reject_full_tree(key, self.counter.count)

    def sub_agent_caller(
        self, engine: Engine, run: AgentRun, options: Options, execute_run: ExecuteRun, *, in_task: bool = False
    ) -> CallSubAgent:
        """Return the function with which `run` calls its sub-agents. `execute_run` executes the child runs.

        With `in_task`, a background task calls them: it passes the unique ID of its call, and does not stop the run
        that started it where the database is away.
        """
        child_options = {name: options[name] for name in INHERITED_OPTIONS if name in options}

        async def call_durable(key: str, prompt: str, call_id: str) -> str:
            self.reject_sub_agent(key)
            # Some servers repeat the IDs of tool calls, but the journal numbers them.
            journal = None if in_task else engine.journals.get(run.pk)
            unique_id = journal.call_ids.get(call_id, call_id) if journal is not None else call_id
            creation = run_db(find_or_create_child, engine.holder, run, key, prompt, unique_id, child_options)
            with interrupting_outages(journal):
                child = await await_creation(creation, lambda: not engine.is_interrupted(run.pk))
                return await await_durable_child(engine, child, lambda row: execute_run(engine, row, self.child(key)))

        async def call(key: str, prompt: str, call_id: str) -> str:
            self.reject_sub_agent(key)
            self.counter.count += 1
            child = await await_creation(run_db(create_child, run, key, prompt, call_id, child_options))
            return await await_child(engine, child, execute_run(engine, child, self.child(key)))

        return call_durable if run.is_durable else call


_cleanups: set[asyncio.Future[None]] = set()  # an event loop keeps no reference to its tasks

Execution = Coroutine[Any, Any, RunResult]
ExecuteRun = Callable[["Engine", AgentRun, RunTree], Execution]


async def await_creation(
    creation: Coroutine[Any, Any, AgentRun], is_cancelled: Callable[[], bool] = lambda: True
) -> AgentRun:
    """Return a child run. If the parent is cancelled meanwhile, end the child, which nobody would execute.

    `is_cancelled` returns False if another process continues the parent.
    """
    created = asyncio.ensure_future(creation)
    try:
        return await asyncio.shield(created)
    except asyncio.CancelledError as error:
        # In a task of its own, because this one may be cancelled again while it waits.
        if ABANDONED not in error.args and is_cancelled():
            cleanup = asyncio.ensure_future(cancel_when_created(created))
            _cleanups.add(cleanup)
            cleanup.add_done_callback(_cleanups.discard)
        raise


async def cancel_when_created(creation: asyncio.Future[AgentRun]) -> None:
    """End a child run as soon as its row exists."""
    with suppress(SubAgentError):  # there is no such agent, so nothing was created
        await run_db(run_ends.cancel_unstarted, await creation)


def create_child(run: AgentRun, key: str, prompt: str, call_id: str, options: Options) -> AgentRun:
    """Create a child run of the agent that `key` names at this time. Raise SubAgentError if there is none."""
    with sub_agent_errors(key):
        agent = stored_agents.sub_agent(key, run.agent_owner_id or "")
        return start_child(agent, parent=run, prompt=prompt, call_id=call_id, options=options)


@contextmanager
def sub_agent_errors(key: str) -> Iterator[None]:
    """Raise SubAgentError where the agent that `key` names cannot be called."""
    try:
        yield
    except Agent.DoesNotExist:
        raise SubAgentError(missing_reference_message("agents", key)) from None
    except AgentArchived:
        raise SubAgentError(missing_reference_message("agents", key, [key])) from None
    except ConfigError as error:  # it needs variables that the call does not have
        reasons = " ".join(f"{issue.field}: {issue.message}" for issue in error.issues)
        raise SubAgentError(f"The agent '{key}' cannot be called. {reasons}") from None


async def await_child(engine: Engine, child: AgentRun, execution: Execution) -> str:
    """Return the output of a child run. Cancelling the parent cancels the child."""
    task = engine.run_task(child.pk, execution)
    try:
        result = await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        raise SubAgentError(AGENT_STOPPED_MESSAGE.format(key=child.agent_key)) from None
    if result.status == AgentRun.Status.SUSPENDED:
        raise ChildSuspended(child.pk)
    return child_output(child.agent_key, result)


def reject_full_tree(key: str, count: int) -> None:
    """Raise SubAgentError if a tree has this many child runs and may have no more."""
    if count >= MAX_SUB_RUNS:
        raise SubAgentError(f"The agent '{key}' cannot be called: this run has made {MAX_SUB_RUNS} sub-agent calls.")


# --- Child runs of durable runs


def find_or_create_child(
    holder: str, run: AgentRun, key: str, prompt: str, call_id: str, options: Options
) -> AgentRun:
    """Return the child run of a call, which an earlier process may have created. Raise SubAgentError if there is none.

    The new run belongs to this process.
    """
    child_id = derive_uuid(run.pk, call_id)
    # The previous release derived the ID in another way.
    child = AgentRun.objects.filter(pk__in=[child_id, uuid5(run.pk, call_id)]).first()
    if child is not None:
        child.read_configuration()  # the event loop must not
        return child
    # In the database, because the runs of the tree may have been executed by several processes.
    reject_full_tree(key, AgentRun.objects.filter(root_id=run.root_id).exclude(parent=None).count())
    with sub_agent_errors(key):
        agent = stored_agents.sub_agent(key, run.agent_owner_id or "")
        return start_durable_child(
            agent, child_id, holder, parent=run, prompt=prompt, call_id=call_id, options=options
        )


async def await_durable_child(engine: Engine, child: AgentRun, execute: Callable[[AgentRun], Execution]) -> str:
    """Return the output of a child run, which this process executes unless another one does.

    Raise RunInterrupted if this process stops meanwhile: then another one continues both runs. Raise ChildSuspended
    if the child run waits for a person, and SubAgentError if it is deleted.
    """
    claimed_at = time.monotonic()
    # An earlier attempt of a background task may have left the child run to this one in the same process.
    is_new = child.holder == engine.holder and child.fence == 1 and child.pk not in engine.run_tasks
    claimed: AgentRun | None = child if is_new else None
    while not child.is_finished:
        if claimed is not None:
            await wait_or_cancel(engine.run_claimed(claimed, claimed_at, execute(claimed)))
        else:
            await asyncio.sleep(CHILD_POLL_INTERVAL)
        if engine.is_stopping:  # the child run may have been handed over, and must not be claimed here again
            raise RunInterrupted
        if await run_db(is_suspended, child.pk):
            raise ChildSuspended(child.pk)
        claimed_at = time.monotonic()
        claimed = await run_db(leases.claim, child.pk, engine.holder)
        if claimed is None:
            await run_db(read_end, child)
    return child_output(child.agent_key, RunResult.of_row(child))


def read_end(child: AgentRun) -> None:
    """Read how a child run has ended, if it has. Raise SubAgentError if it was deleted."""
    try:
        child.refresh_from_db(fields=["status", "output", "error"])
    except AgentRun.DoesNotExist:
        raise SubAgentError(DELETED_AGENT_MESSAGE) from None


def is_suspended(run_id: UUID) -> bool:
    return AgentRun.objects.filter(pk=run_id, status=AgentRun.Status.SUSPENDED).exists()


async def wait_or_cancel(task: asyncio.Task[RunResult]) -> None:
    """Wait for the end of a task, whatever it is. Cancelling the caller cancels the task, unless it is abandoned."""
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError as error:
        if ABANDONED not in error.args:
            task.cancel()
        raise
