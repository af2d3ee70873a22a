"""The row of a new run, and who executes it after the commit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.db import transaction

from access_app.caller import Caller
from agentcms.errors import Unavailable
from agentcms.tracing.spans import traceparent_to_store
from memory_app.models import Thread
from memory_app.realms import owner_of_realm, served_owner
from runs_app.engine import leases
from runs_app.engine.engine import get_engine
from runs_app.engine.runners import get_runner
from runs_app.engine.start.input import RunInput
from runs_app.events.notifications import notifier, thread_channel
from runs_app.models import AgentRun
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def insert_run(
    agent: ResolvedAgent,
    user: User | None,
    run_input: RunInput,
    *,
    is_durable: bool,
    ends_only: bool = False,
    **columns: Any,
) -> AgentRun:
    """Save a run and have it executed after the commit. `ends_only` says that its caller waits for the end only."""
    if is_durable:
        return insert_durable_run(agent, user, run_input, ends_only=ends_only, **columns)
    engine = get_engine()
    run = save_run(agent, user, run_input, agent.owner_id, **leases.start_columns(engine.holder), **columns)
    # After the commit, because the task reads the row over a connection of its own.
    transaction.on_commit(lambda: engine.submit(run, ends_only=ends_only))
    return run


def insert_durable_run(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, *, ends_only: bool, **columns: Any
) -> AgentRun:
    """Save a durable run, which this process executes if the runner says so. Otherwise another one claims it."""
    runner = get_runner()
    if (engine := runner.find_local_engine()) is None:
        run = save_run(agent, user, run_input, agent.owner_id, **leases.queue_columns(), **columns)
        transaction.on_commit(lambda: runner.dispatch(run.pk))
        return run
    # Before the row is written: this process must not count on its lease for longer than the database does.
    claimed_at = time.monotonic()
    run = save_run(agent, user, run_input, agent.owner_id, **leases.claim_columns(engine.holder), **columns)
    transaction.on_commit(lambda: engine.submit_claimed(run, claimed_at, ends_only=ends_only))
    return run


def queue_run(agent: ResolvedAgent, user: User | None, run_input: RunInput, **columns: Any) -> AgentRun:
    """Save a durable run, which some process executes after the commit, even if this one stops."""
    run = insert_run_row(agent, user, run_input, agent.owner_id, **leases.queue_columns(), **columns)
    transaction.on_commit(lambda: get_runner().dispatch(run.pk))
    return run


def save_run(agent: ResolvedAgent, user: User | None, run_input: RunInput, owner_id: str, **columns: Any) -> AgentRun:
    """Save the row of a run. Raise Unavailable while this process stops."""
    if get_engine().is_stopping:
        raise Unavailable("This server is about to stop. Try again shortly.")
    return insert_run_row(agent, user, run_input, owner_id, **columns)


def insert_run_row(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, owner_id: str, **columns: Any
) -> AgentRun:
    """Insert the row of a run, and wake the readers of its thread after the commit."""
    columns.setdefault("realm_owner", find_realm_owner(user, columns.get("thread")))
    run = AgentRun(
        agent_id=agent.id if agent.source == "stored" else None,
        agent_key=agent.id,
        owner_id=owner_id,
        agent_owner_id=agent.owner_id,
        target=agent.target,
        version_id=agent.version_id,
        version_number=agent.version_number,
        requested_by=user,
        requested_by_name=user.get_username() if user else "",
        input=run_input,
        traceparent=traceparent_to_store("start run"),
        **columns,
    )
    run.configuration = dict(agent.configuration)
    if run.root_id is None:
        run.root_id = run.pk
    run.save(force_insert=True)
    if (thread_id := run.thread_id) is not None:
        transaction.on_commit(lambda: notifier.notify({thread_channel(thread_id): False}))
    return run


def find_realm_owner(user: Caller | None, thread: Thread | None) -> str | None:
    """Return the owner whose end users ask: that of the realm of a thread, else that of the API key of the caller."""
    if thread is not None and thread.realm:
        return owner_of_realm(thread.realm)
    return None if user is None else served_owner(user)
