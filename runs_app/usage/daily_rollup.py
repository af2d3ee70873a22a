"""The nightly roll-up of runs into figures per day, before old runs are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min, QuerySet
from django.utils import timezone

from agentcms.db.locks import lock_name
from jobs_app.cleanup import before_cleanup, expired_rows
from runs_app.models import AgentRun, DailyUsage
from runs_app.models.run_queryset import AgentRunQuerySet
from runs_app.usage.figures import aggregate_runs

USAGE_DAYS = 400  # of the figures
ONE_DAY = timedelta(days=1)
BATCH_SIZE = 1000


@before_cleanup
def roll_up_days() -> Iterator[date]:
    """Write the figures of all days up to yesterday, and yield each. Days that are written already get late scores."""
    for day in days_to_write(timezone.now()):
        roll_up_day(day)
        yield day


def days_to_write(now: datetime) -> Iterator[date]:
    """Yield the days from the last written one to yesterday, and the day before it, oldest first.

    A written day whose runs may be deleted in part is left out: its figures would become too small.
    """
    last = last_written_day()
    day = last - ONE_DAY if last else first_day_with_runs()
    while day is not None and day < now.astimezone(UTC).date():
        is_complete = start_of(day) > now - timedelta(days=settings.RUN_DAYS)
        if is_complete or last is None or day > last:
            yield day
        day += ONE_DAY


def roll_up_day(day: date) -> None:
    """Replace the figures of a day by those of its runs."""
    with transaction.atomic():
        # Two processes would both delete what neither has stored yet, and then store the day twice.
        lock_name("use per day")
        usage = aggregate_runs(finished_runs(start_of(day), start_of(day + ONE_DAY)))
        DailyUsage.objects.filter(day=day).delete()
        rows = [DailyUsage(**key._asdict(), **vars(figures)) for key, figures in usage.items()]
        DailyUsage.objects.bulk_create(rows, BATCH_SIZE)


def finished_runs(start: datetime, end: datetime | None = None) -> AgentRunQuerySet:
    """Return the runs of stored agents that ended in a period."""
    runs = AgentRun.objects.filter(agent__isnull=False, finished_at__gte=start)
    return runs.filter(finished_at__lt=end) if end else runs


def last_written_day() -> date | None:
    day: date | None = DailyUsage.objects.aggregate(day=Max("day"))["day"]
    return day


def first_day_with_runs() -> date | None:
    first: datetime | None = AgentRun.objects.aggregate(first=Min("finished_at"))["first"]
    return first.astimezone(UTC).date() if first else None


def start_of(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


@expired_rows("use per day")
def expired_usage() -> QuerySet[DailyUsage]:
    return DailyUsage.objects.filter(day__lt=timezone.now().date() - timedelta(days=USAGE_DAYS))
