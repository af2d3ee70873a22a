"""The creation of a run: its input, memory and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from runs_app.engine.start.concurrency_limits import lock_and_check_limits
from runs_app.engine.start.input import RunInput, fill_input, reject_taken_tool_names, without_known_messages
from runs_app.engine.start.memory import ThreadName, memory_columns, reject_missing_thread
from runs_app.engine.start.rows import insert_run
from runs_app.models import AgentRun
from runs_app.requests.memory import find_wider_options
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def create_run(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, thread: ThreadName, **columns: Any
) -> AgentRun:
    """Create a run if the limits allow it. Raise TooManyRuns otherwise.

    Raise ConfigError for missing variables, and for client tools with the name of a tool of the agent.
    """
    reject_taken_tool_names(agent, run_input.get("clientTools", []))
    wider = find_wider_options(agent.configuration.get("memory"), run_input.get("memory") or {})
    warnings = [*columns.get("warnings", []), *(option._asdict() for option in wider)]
    run_input, columns["warnings"] = fill_input(agent, run_input, warnings)
    reject_missing_thread(agent, run_input, thread)
    # All that needs no lock is checked before: the limits hold a lock that others wait for.
    with transaction.atomic():
        if "experiment_id" in columns:  # the experiment counts its runs, which do not use the memory of its user
            thread = thread._replace(has_default=False)
        else:
            lock_and_check_limits(agent, user)
        memory = memory_columns(agent, user, thread)
        run_input = without_known_messages(run_input, memory.get("thread"))
        return insert_run(agent, user, run_input, **memory, **columns)
