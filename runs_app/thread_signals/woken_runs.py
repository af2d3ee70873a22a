"""Runs that signals wake: at once in an idle thread, else at the end of the active run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db import IntegrityError, transaction

from access_app.permissions import require_role
from access_app.role import Role, RoleRequired
from agentcms.db.column_values import ColumnValues
from agentcms.db.locks import lock_referenced_rows
from agentcms.db.outages import OUTAGE_ERRORS
from agentcms.errors import ApiError
from agents_app.configuration.schema import ConfigError
from agents_app.editing.archive_guard import AgentArchived
from agents_app.models import Agent
from memory_app.history.thread_signals import (
    QUEUED,
    WAKES,
    claim_signals,
    refuse_signals,
    release_signals,
    waiting_signals,
)
from memory_app.models import Message, Thread
from runs_app.engine.durability import find_durability
from runs_app.engine.run_ends import LOST_PROCESS
from runs_app.engine.start.input import build_input, fill_input
from runs_app.engine.start.memory import active_run_id
from runs_app.engine.start.rows import queue_run
from runs_app.models import AgentRun
from runs_app.requests.facts import FACTS, context_input, with_variants
from runs_app.resolution import ResolvedAgent, stored_agents
from runs_app.thread_signals.woken_input import SIGNALS, woken_messages
from versions_app.models import AgentVersion

log = logging.getLogger(__name__)

MAX_RUNS_LOST_WITH_SIGNAL = 3  # then no run gets the signal again: it may be what stops them
EXPECTED_ERRORS = (Agent.DoesNotExist, AgentVersion.DoesNotExist, AgentArchived, RoleRequired, ConfigError, ApiError)
DELETED_MESSAGE = "The agent or the sender was deleted before the run could be started."
UNEXPECTED_MESSAGE = "The run could not be started. The server log has the details."


def start_woken_run(thread: Thread, signals: Sequence[Message]) -> AgentRun:
    """Start a durable run that takes these signals. The caller has locked the thread.

    Raise ConfigError, RoleRequired, Agent.DoesNotExist, AgentArchived or AgentVersion.DoesNotExist.
    """
    first = next((signal for signal in signals if (signal.delivery or {}).get(WAKES)), signals[0])
    delivery, user = first.delivery or {}, first.author
    facts = delivery.get(FACTS) or {}
    agent = with_variants(resolve_woken_agent(first), facts, delivery.get("requestContext") or {})
    options = find_durability(agent, delivery.get("options") or {}).options
    messages = woken_messages(agent.configuration, signals)
    run_input = build_input(messages, options, delivery.get("clientTools") or [], delivery.get("requestContext") or {})
    run_input |= {SIGNALS: [signal.key for signal in signals], **context_input(agent, facts)}
    run_input, warnings = fill_input(agent, run_input, [])
    columns: ColumnValues = {"thread": thread, "resource_id": thread.resource_id, "warnings": warnings}
    run_id = delivery.get("runId")
    # The sender knows the run by this ID, unless an earlier delivery of the signal has taken it.
    if run_id and not AgentRun.objects.filter(pk=run_id).exists():
        columns["pk"] = UUID(run_id)
    run = queue_run(agent, user, run_input, **columns)
    claim_signals(signals, run.pk)
    return run


def resolve_woken_agent(signal: Message) -> ResolvedAgent:
    """Return the agent that a signal wakes, at the version that its sender named. Raise RoleRequired."""
    delivery, user = signal.delivery or {}, signal.author
    version_id = delivery.get("versionId")
    agent = stored_agents.get(
        delivery["agent"],
        user=user,
        version_id=UUID(version_id) if version_id else None,
        status="draft" if delivery.get("target") == AgentRun.Target.DRAFT else "published",
    )
    if user is not None:
        require_role(user, Role.EDITOR, agent.owner_id)
    elif signal.author_name:  # a person who was deleted meanwhile; trusted code has no name
        raise RoleRequired(Role.EDITOR, agent.owner_id)
    return agent


def start_next_run(run_id: UUID, *, status: str, error: str = "") -> AgentRun | None:
    """Start the next run of a thread if signals wait, and return it.

    Call it in the transaction that ends a run of the thread.
    Both this and the sender of a signal lock the thread, so no signal comes between the end and the search.
    """
    runs = AgentRun.objects.filter(pk=run_id, parent=None)
    thread = Thread.objects.select_for_update(of=("self",)).filter(runs__in=runs).first()
    if thread is None:
        return None
    if status == AgentRun.Status.FAILED and error.startswith(LOST_PROCESS):
        release_signals(thread.pk, run_id, MAX_RUNS_LOST_WITH_SIGNAL)
    return start_run_for_waiting(thread)


def start_next_run_of_thread(thread_id: int) -> AgentRun | None:
    """Start the next run of a thread whose active run was deleted, if signals wait, and return it.

    Call it in a transaction after that of the deletion, which has locked agents that a sender locks before the thread.
    """
    thread = Thread.objects.select_for_update(of=("self",)).filter(pk=thread_id).first()
    return None if thread is None else start_run_for_waiting(thread)


def start_run_for_waiting(thread: Thread) -> AgentRun | None:
    """Start a run for the signals that wait in a locked thread, unless one is active. Return it, or None."""
    waiting = [*waiting_signals(thread.pk).select_related("author")]
    if not waiting or active_run_id(thread) is not None:
        return None
    while signals := next_group(waiting):
        if (run := start_or_refuse(thread, signals)) is not None:
            return run
        waiting = [signal for signal in waiting if signal not in signals]
    return None


def next_group(waiting: Sequence[Message]) -> list[Message]:
    """Return the signals that the next run takes: a queued one alone, else all others. Return none if none wakes."""
    waking = next((signal for signal in waiting if (signal.delivery or {}).get(WAKES)), None)
    if waking is None:
        return []
    if (waking.delivery or {}).get(QUEUED):
        return [waking]
    return [signal for signal in waiting if not (signal.delivery or {}).get(QUEUED)]


def start_or_refuse(thread: Thread, signals: Sequence[Message]) -> AgentRun | None:
    """Start a run for signals. If that fails for good, note why on the signals and return None."""
    try:
        # A savepoint: a failure here must not undo the end of the run before.
        with transaction.atomic():
            run = start_woken_run(thread, signals)
            lock_referenced_rows()
            return run
    except OUTAGE_ERRORS:
        raise  # the writer tries again
    except EXPECTED_ERRORS as error:
        refuse_signals(signals, refusal_reason(error))
    except IntegrityError:
        refuse_signals(signals, DELETED_MESSAGE)
    except Exception:
        log.exception("The signals of thread %s could not wake a run.", thread.pk)
        refuse_signals(signals, UNEXPECTED_MESSAGE)
    return None


def refusal_reason(error: Exception) -> str:
    """Return why no run could be started, for the readers of the thread."""
    if isinstance(error, ConfigError):
        return " ".join(f"{issue.field}: {issue.message}" for issue in error.issues)
    if isinstance(error, RoleRequired):
        return "The sender may no longer run the agent."
    if isinstance(error, AgentArchived):
        return "The agent was archived."
    return "The agent no longer exists." if not isinstance(error, ApiError) else str(error)
