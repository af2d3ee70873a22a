"""The partitions by day of the events and steps of runs on PostgreSQL: made ahead, and dropped with all their rows.

A partition is dropped once all runs of its day have ended long enough ago. What is left in the default partition, and
on SQLite, is deleted row by row.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from agentcms.db.partitions import ONE_DAY, Partition, create_partition, drop_partition, list_partitions
from jobs_app.cleanup import before_cleanup
from runs_app.models import AgentRun, RunEvent, RunStep

log = logging.getLogger(__name__)

DAYS_AHEAD = 4  # so that some nights without the job do no harm
EVENTS, STEPS = RunEvent._meta.db_table, RunStep._meta.db_table


@before_cleanup
def maintain_partitions() -> Iterator[str]:
    """Create the partitions of the next days and drop those of expired days. Yield the name of each table."""
    if connection.vendor != "postgresql":
        return
    now = timezone.now()
    for table, days in ((EVENTS, settings.RUN_DAYS), (STEPS, settings.RUN_STEP_DAYS)):
        create_ahead(table, now)
        drop_expired(table, now - timedelta(days=days))
        yield table


def create_ahead(table: str, now: datetime) -> None:
    """Create the missing partitions from today on."""
    existing = {partition.day for partition in list_partitions(table)}
    days = [now.date() + number * ONE_DAY for number in range(DAYS_AHEAD + 1)]
    for day in days:
        if day not in existing and not create_partition(table, day):
            log.warning("There is no partition of %s for %s. Its rows are in the default partition.", table, day)


def drop_expired(table: str, limit: datetime) -> None:
    """Drop the partitions of the days of which all runs ended before a limit."""
    for partition in list_partitions(table):
        if partition.day >= limit.date():
            return
        if not has_younger_runs(partition, limit) and not drop_partition(partition):
            log.warning("The partition %s could not be dropped. The next clean-up tries again.", partition.name)


def has_younger_runs(partition: Partition, limit: datetime) -> bool:
    """Return whether a run of the day of a partition has not ended, or ended after a limit."""
    # The ID of a run begins with its time, so the runs of a day are a range.
    runs = AgentRun.objects.filter(pk__gte=partition.first_id, pk__lt=partition.end_id)
    return runs.filter(Q(finished_at=None) | Q(finished_at__gte=limit)).exists()
