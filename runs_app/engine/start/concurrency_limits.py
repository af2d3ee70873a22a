"""The limits on unfinished runs of a user and of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from access_app.caller import Caller
from agentcms.db.locks import lock_name
from agentcms.errors import ApiError
from agentcms.plural import pluralize
from agents_app.editing.archive_guard import reject_archived
from agents_app.models import Agent
from runs_app.frequent_queries import leased_runs_of, locked_agent_of_run, suspended_runs
from runs_app.models import AgentRun
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from django.contrib.auth.models import User


RUN_RETRY_AFTER = 2  # seconds


class TooManyRuns(ApiError):
    """Error 429: the user or the agent has too many unfinished runs."""

    def __init__(self, message: str) -> None:
        super().__init__(429, message, "too_many_runs", headers={"Retry-After": str(RUN_RETRY_AFTER)})


def lock_and_check_limits(agent: ResolvedAgent, user: User | None) -> None:
    """Lock the runs of the user and of the agent. Raise TooManyRuns if either has too many unfinished ones.

    Other users can start runs of other agents meanwhile.
    """
    reject_limits(agent, user, lock_runs(agent, user))


def lock_runs(agent: ResolvedAgent, user: User | None) -> bool:
    """Lock the runs of the user and of the agent. Return whether too many runs of the user wait for people.

    Raise Agent.DoesNotExist or AgentArchived.
    """
    # All callers lock the user first. Otherwise two of them could wait for each other.
    if user is not None:
        lock_name(f"runs of user {user.pk}")
    if agent.source == "code":
        lock_name(f"runs of agent {agent.id}")
        limit = settings.RUNS_SUSPENDED_PER_USER
        return suspended_runs(id_or_zero(user))[limit - 1 : limit].exists()
    # The lock also keeps the agent from being deleted.
    row = locked_agent_of_run.first(settings.RUNS_SUSPENDED_PER_USER, agent_id=agent.id, user_id=id_or_zero(user))
    if row is None:
        raise Agent.DoesNotExist
    reject_archived(row)
    return bool(vars(row)["has_many_suspended"])


def id_or_zero(user: User | None) -> int:
    """Return the ID of the user of a run, or for trusted code 0, which no user has."""
    return 0 if user is None else user.pk


def reject_limit_of_user(user: Caller) -> None:
    """Raise TooManyRuns if a user, who is about to call a tool without a run, has too many unfinished runs."""
    if AgentRun.objects.leased().filter(requested_by=user.pk).count() >= settings.RUNS_PER_USER:
        raise too_many_runs_of_user()


def too_many_runs_of_user() -> TooManyRuns:
    return TooManyRuns(
        f"You have reached the limit of {pluralize(settings.RUNS_PER_USER, 'unfinished run')}. "
        "Wait for one, or stop one."
    )


def reject_limits(agent: ResolvedAgent, user: User | None, has_many_suspended: bool) -> None:
    """Raise TooManyRuns if the user or the agent has too many unfinished runs, or the user too many that wait."""
    leased = leased_runs_of(user_id=id_or_zero(user), agent_id=agent.id)
    if has_many_suspended:
        raise TooManyRuns(
            f"You have reached the limit of {pluralize(settings.RUNS_SUSPENDED_PER_USER, 'suspended run')}. "
            "Decide the calls that they wait for, or stop some of them."
        )
    if user is not None and sum(user_id == user.pk for user_id, _ in leased) >= settings.RUNS_PER_USER:
        raise too_many_runs_of_user()
    if sum(key == agent.id for _, key in leased) >= settings.RUNS_PER_AGENT:
        raise TooManyRuns(
            f"This agent has reached its limit of {pluralize(settings.RUNS_PER_AGENT, 'unfinished run')}. "
            "Try again shortly."
        )
