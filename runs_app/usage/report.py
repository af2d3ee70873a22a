"""The use of an agent per day and version, for one of its pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import has_role_everywhere, owner_ids_for
from access_app.role import Role
from agents_app.models import Agent
from runs_app.models import DailyUsage
from runs_app.usage.daily_rollup import ONE_DAY, finished_runs, last_written_day, start_of
from runs_app.usage.figures import UNSAVED_VERSION, UsageFigures, aggregate_runs
from runs_app.usage.histogram import estimate_percentile

P95 = 0.95
MAX_MOVES = 100

Usage = dict[tuple[date, int], UsageFigures]  # by day and version


@dataclass(frozen=True)
class LiveMove:
    """A move of the live pointer."""

    version_number: int
    created_at: datetime


@dataclass(frozen=True)
class UsageReport:
    """The figures of the runs of an agent, by day and version. Days are in UTC."""

    days: list[date]
    usage: Usage
    moves: list[LiveMove]

    @cached_property
    def versions(self) -> list[int]:
        """The versions that ran, newest first; unsaved text comes last."""
        return sorted({version for _, version in self.usage}, reverse=True)

    @cached_property
    def totals(self) -> dict[int, UsageFigures]:
        """The figures of all days, by version."""
        totals = {version: UsageFigures() for version in self.versions}
        for (_, version), figures in self.usage.items():
            totals[version].add(figures)
        return totals


def build_report(agent: Agent, user: Caller, day_count: int) -> UsageReport:
    """Return the figures of the last days, today included, of the runs that the user may read by a role."""
    today = timezone.now().astimezone(UTC).date()
    days = [today - timedelta(days=ago) for ago in range(day_count - 1, -1, -1)]
    return UsageReport(days, load_usage(agent, user, days[0]), live_moves(agent, days[0]))


def load_usage(agent: Agent, user: Caller, first_day: date) -> Usage:
    """Return the figures since a day: from the roll-up, and from the runs of the days that it does not have yet."""
    last = last_written_day()
    first_open_day = max(first_day, last + ONE_DAY) if last else first_day
    rows = DailyUsage.objects.for_user(user).filter(agent=agent, day__gte=first_day, day__lt=first_open_day)
    usage: Usage = {}
    for row in rows:
        usage.setdefault((row.day, row.version_number), UsageFigures()).add(UsageFigures.from_row(row))
    runs = finished_runs(start_of(first_open_day)).filter(agent=agent)
    if not has_role_everywhere(user, Role.PUBLISHER):
        runs = runs.filter(owner_id__in=owner_ids_for(user, Role.PUBLISHER))
    for key, figures in aggregate_runs(runs).items():
        usage.setdefault((key.day, key.version_number), UsageFigures()).add(figures)
    return usage


def live_moves(agent: Agent, first_day: date) -> list[LiveMove]:
    """Return the newest moves of the live pointer since a day, oldest first."""
    moves = agent.activations.filter(created_at__gte=start_of(first_day))
    columns = moves.values_list("to_version_number", "created_at")
    return [LiveMove(*move) for move in columns[:MAX_MOVES]][::-1]


def version_label(number: int) -> str:
    return "unsaved text" if number == UNSAVED_VERSION else f"v{number}"


def p95(figures: UsageFigures) -> timedelta | None:
    """Return the estimated duration that 95 % of the runs did not exceed."""
    return estimate_percentile(figures.durations, P95)


def mean_score(figures: UsageFigures) -> float | None:
    """Return the mean of the scores of all scorers, or None without scores."""
    count = sum(number for number, _ in figures.scores.values())
    return sum(total for _, total in figures.scores.values()) / count if count else None
