"""Enqueueing the job that observes a thread."""

from __future__ import annotations

from uuid import UUID

from jobs_app.kinds import register_title
from jobs_app.runner import enqueue
from memory_app.models import Thread
from memory_app.observational.limits import (
    ObservationLimits,
    observation_limits,
    observational_options_of_agent,
)
from memory_app.observational.observation_log import load_log, tokens_after

OBSERVE_THREAD = "observe_thread"
# Here and not at the handler, whose module web processes do not import.
register_title(OBSERVE_THREAD, "Observation of threads")


def enqueue_observing(thread_id: int, limits: ObservationLimits, run_id: UUID | None = None) -> None:
    """Let a worker observe a thread after the commit, if enough of its messages have no observation.

    The options are those of the run, or without one those of the agent of the thread.
    """
    if tokens_after(thread_id, load_log(thread_id).observed_until) >= limits.trigger_tokens:
        enqueue(OBSERVE_THREAD, {"thread": thread_id, "run": str(run_id) if run_id else None})


def observe_if_enabled(thread: Thread) -> None:
    """Let a worker observe a thread whose messages came from a client, if its agent has observational memory."""
    if (options := observational_options_of_agent(thread.agent)) is not None:
        enqueue_observing(thread.pk, observation_limits(options))
