"""Tables of PostgreSQL that are partitioned by the day of `run_id`, a version 7 UUID, which begins with the time.

Rows of other UUIDs, and of days without a partition, are in the default partition.
"""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import IntegrityError, OperationalError, ProgrammingError, connection, transaction

log = logging.getLogger(__name__)

ONE_DAY = timedelta(days=1)
ABSENCE = "no_rows_of_the_next_partition"
# Codes of PostgreSQL: the table is there, or the constraint is not, because another clean-up runs at the same time.
CHANGED_MEANWHILE = {"42P07", "42704"}
MAX_LOCK_WAIT = "2s"  # all writers of the table wait behind a statement that waits for its lock


class Partition(NamedTuple):
    """The partition of a day."""

    name: str
    day: date

    @property
    def first_id(self) -> UUID:
        return first_id(self.day)

    @property
    def end_id(self) -> UUID:
        """The first ID of the next day."""
        return first_id(self.day + ONE_DAY)


def first_id(day: date) -> UUID:
    """Return the smallest UUID of a day."""
    milliseconds = int(datetime.combine(day, time(), UTC).timestamp()) * 1000
    return UUID(int=milliseconds << 80)


def list_partitions(table: str) -> list[Partition]:
    """Return the partitions of a table by day, oldest first, without the default one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = to_regclass(%s)", [table])
        names = [name for (name,) in cursor.fetchall()]
    # The default partition has a word in place of the day.
    days = sorted(day for name in names if (day := name.removeprefix(f"{table}_")).isdecimal())
    return [Partition(f"{table}_{day}", datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC).date()) for day in days]


def create_partition(table: str, day: date) -> bool:
    """Create the partition of a day unless it is there, as after a clean-up that runs at the same time.

    Return False if its rows are in the default one, if a lock takes too long, or if another table has its name.
    """
    name, default = f"{table}_{day:%Y%m%d}", f"{table}_default"
    first, end = first_id(day), first_id(day + ONE_DAY)
    is_future = day > datetime.now(UTC).date()  # nothing is written there now, so the constraint refuses nothing
    # Attaching needs a weaker lock than `CREATE TABLE … PARTITION OF`: readers and writers of other days go on.
    is_attached = (not is_future or prove_absence(default, first, end)) and execute_or_give_up(
        f'CREATE TABLE "{name}" (LIKE "{table}" INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
        f"""ALTER TABLE "{table}" ATTACH PARTITION "{name}" FOR VALUES FROM ('{first}') TO ('{end}')""",
        drop_absence(default),
    )
    if is_attached:
        return True
    execute_or_give_up(drop_absence(default))  # the day would come, and its rows would be refused
    return any(partition.day == day for partition in list_partitions(table))


def drop_absence(default: str) -> str:
    """Return the statement that drops the constraint of `prove_absence` if it is there."""
    return f'ALTER TABLE "{default}" DROP CONSTRAINT IF EXISTS {ABSENCE}'


def prove_absence(default: str, first: UUID, end: UUID) -> bool:
    """Add a constraint by which a default partition has no rows of some IDs. Return whether it was proved.

    Without it PostgreSQL reads the whole default partition while a partition is attached, and nobody else may read it.
    Validating a constraint stops neither readers nor writers.

    Source: https://www.postgresql.org/docs/current/ddl-partitioning.html (maintenance of partitions)
    """
    is_added = execute_or_give_up(
        drop_absence(default),  # of an interrupted attempt
        f"""ALTER TABLE "{default}" ADD CONSTRAINT {ABSENCE}"""
        f""" CHECK (run_id < '{first}' OR run_id >= '{end}') NOT VALID""",
    )
    return is_added and execute_or_give_up(f'ALTER TABLE "{default}" VALIDATE CONSTRAINT {ABSENCE}')


def drop_partition(partition: Partition) -> bool:
    """Drop a partition with its rows, if it is there. Return False if a lock takes too long."""
    return execute_or_give_up(f'DROP TABLE IF EXISTS "{partition.name}"')


def execute_or_give_up(*statements: str) -> bool:
    """Execute statements in a transaction. Return False if they fail for the reasons above."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{MAX_LOCK_WAIT}'")
            for statement in statements:
                cursor.execute(statement)
    except (IntegrityError, OperationalError, ProgrammingError) as error:
        was_changed = getattr(error.__cause__, "sqlstate", "") in CHANGED_MEANWHILE
        if isinstance(error, ProgrammingError) and not was_changed:
            raise
        log.info("A partition was not changed: %s", str(error).partition("\n")[0])
        return False
    return True
