"""The events and steps of runs, in partitions by day on PostgreSQL."""

from datetime import timedelta
from importlib import import_module
from uuid import UUID, uuid5

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from agentcms.db.partitions import ABSENCE, Partition, create_partition, drop_partition, first_id, list_partitions
from agentcms.ids import derive_uuid, uuid7
from runs_app.models import AgentRun, RunEvent, RunStep
from runs_app.partitions import DAYS_AHEAD, EVENTS, STEPS, maintain_partitions
from tests.concurrently import run_concurrently
from tests.runs_app.factories import RunFactory

pytestmark = [pytest.mark.django_db, pytest.mark.postgres_only]

migration = import_module("runs_app.migrations.0028_partitions")
TODAY = timezone.now().date()


def run_of_day(day, **columns):
    """Return a run of a day with an event and a step."""
    pk = UUID(int=first_id(day).int + (7 << 76) + (2 << 62) + 1)
    run = RunFactory(id=pk, **columns)
    RunStep.objects.create(run=run, key="0/m/1", kind="model", state="done")
    return run


def partition_of(row):
    sql = f"SELECT DISTINCT tableoid::regclass::text FROM {row._meta.db_table} WHERE run_id = %s"
    with connection.cursor() as cursor:
        cursor.execute(sql, [row.pk[0]])
        ((name,),) = cursor.fetchall()
    return name


def days(table):
    return [partition.day for partition in list_partitions(table)]


def test_rows_of_a_run_are_in_the_partition_of_its_day():
    run = run_of_day(TODAY)

    assert partition_of(run.events.first()) == f"{EVENTS}_{TODAY:%Y%m%d}"
    assert partition_of(run.steps.first()) == f"{STEPS}_{TODAY:%Y%m%d}"


def test_rows_of_a_sub_agent_are_in_the_partition_of_its_parent():
    parent = RunFactory(id=uuid7())
    child = RunFactory(id=derive_uuid(parent.pk, "call-1"), parent=parent)

    assert partition_of(child.events.first()) == partition_of(parent.events.first())


def test_rows_of_other_ids_are_in_the_default_partition():
    run = RunFactory(id=uuid5(UUID(int=0), "x"))

    assert partition_of(run.events.first()) == f"{EVENTS}_default"


def test_a_query_for_one_run_reads_one_partition():
    run = run_of_day(TODAY)
    plan = RunEvent.objects.filter(run=run.pk).explain()

    assert f"{EVENTS}_{TODAY:%Y%m%d}" in plan
    assert "default" not in plan
    assert "Append" not in plan


def test_partitions_of_the_next_days_are_created():
    *_, last = list_partitions(EVENTS)
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TABLE "{last.name}"')

    list(maintain_partitions())
    list(maintain_partitions())

    expected = [TODAY + timedelta(days=number) for number in range(DAYS_AHEAD + 1)]
    assert days(EVENTS)[-len(expected) :] == days(STEPS)[-len(expected) :] == expected


def test_a_day_whose_rows_are_in_the_default_partition_gets_none(caplog):
    today = next(partition for partition in list_partitions(EVENTS) if partition.day == TODAY)
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TABLE "{today.name}"')
    run = run_of_day(TODAY)

    list(maintain_partitions())

    assert TODAY not in days(EVENTS)
    assert run.events.count() == 2
    assert "Its rows are in the default partition." in caplog.text


@pytest.fixture
def default_partition(transactional_db):
    """A row of an earlier day in the default partition, and no partition of the last day."""
    run_of_day(TODAY - timedelta(days=400))
    last = list_partitions(EVENTS)[-1]
    drop_partition(last)
    return last.day


def test_the_default_partition_is_not_read_while_one_is_attached(default_partition):
    notices = []
    connection.connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    with connection.cursor() as cursor:
        cursor.execute("SET client_min_messages = debug1")

    assert create_partition(EVENTS, default_partition)

    with connection.cursor() as cursor:
        cursor.execute("RESET client_min_messages")
        cursor.execute("SELECT count(*) FROM pg_constraint WHERE conname = %s", [ABSENCE])
        assert cursor.fetchone() == (0,)
    implied = (
        f'updated partition constraint for default partition "{EVENTS}_default" is implied by existing constraints'
    )
    assert implied in notices


def test_a_future_day_with_rows_in_the_default_partition_gets_none(default_partition):
    run = run_of_day(default_partition)

    assert not create_partition(EVENTS, default_partition)

    run.events.all().delete()
    assert create_partition(EVENTS, default_partition)


def test_a_partition_that_cannot_be_attached_leaves_no_constraint(default_partition, second_connection):
    with second_connection.cursor() as cursor:
        cursor.execute(f'LOCK TABLE "{EVENTS}" IN SHARE UPDATE EXCLUSIVE MODE')

        assert not create_partition(EVENTS, default_partition)

    run = run_of_day(default_partition)
    assert partition_of(run.events.first()) == f"{EVENTS}_default"


def test_a_partition_that_another_process_created_or_dropped_meanwhile_is_no_error(default_partition):
    assert create_partition(EVENTS, default_partition)
    assert create_partition(EVENTS, default_partition)

    last = list_partitions(EVENTS)[-1]
    assert drop_partition(last)
    assert drop_partition(last)


def test_clean_ups_at_one_time_do_not_fail(transactional_db):
    for partition in [*list_partitions(EVENTS), *list_partitions(STEPS)]:
        if partition.day > TODAY:
            drop_partition(partition)

    assert run_concurrently([lambda: list(maintain_partitions())] * 3) == [[EVENTS, STEPS]] * 3

    list(maintain_partitions())  # what each of them left to the others
    assert len(days(EVENTS)) == len(days(STEPS)) == DAYS_AHEAD + 1


def test_a_table_that_is_no_partition_is_left_alone(default_partition):
    name = f"{EVENTS}_{default_partition:%Y%m%d}"
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE TABLE "{name}" (id int)')

    assert not create_partition(EVENTS, default_partition)

    with connection.cursor() as cursor:
        cursor.execute(f'DROP TABLE "{name}"')


@pytest.fixture
def second_connection(transactional_db):
    """Return a connection with an open transaction."""
    other = connection.copy()
    other.set_autocommit(False)
    yield other
    other.rollback()
    other.close()


@pytest.fixture
def past_partitions(transactional_db):
    """Drop the partitions of past days after the test."""
    yield
    for partition in [*list_partitions(EVENTS), *list_partitions(STEPS)]:
        if partition.day < TODAY:
            drop_partition(partition)


@pytest.mark.usefixtures("past_partitions")
@pytest.mark.parametrize(
    ("age", "is_open", "has_events", "has_steps"),
    [(1, False, True, True), (3, False, True, False), (40, False, False, False), (40, True, True, True)],
)
def test_partitions_are_dropped_when_all_runs_of_the_day_have_expired(settings, age, is_open, has_events, has_steps):
    settings.RUN_DAYS, settings.RUN_STEP_DAYS = 30, 2
    day = TODAY - timedelta(days=age)
    assert create_partition(EVENTS, day)
    assert create_partition(STEPS, day)
    at = timezone.now() - timedelta(days=age)
    run_of_day(day, created_at=at, finished_at=None if is_open else at)

    list(maintain_partitions())

    assert (day in days(EVENTS), day in days(STEPS)) == (has_events, has_steps)
    assert (RunEvent.objects.exists(), RunStep.objects.exists()) == (has_events, has_steps)
    assert AgentRun.objects.exists()


def test_a_partition_holds_the_ids_of_its_day():
    partition = Partition("x", TODAY)

    assert partition.first_id < uuid7() < partition.end_id


@pytest.mark.django_db(transaction=True)
def test_the_migration_can_be_reversed_and_repeated():
    run = run_of_day(TODAY)
    numbers = list(run.events.values_list("number", flat=True))

    with connection.schema_editor(atomic=False) as editor:
        migration.restore_tables(apps, editor)
        plain = list_partitions(EVENTS)
        after_reversal = list(run.events.values_list("number", flat=True))
        migration.change_tables(apps, editor)
        migration.change_tables(apps, editor)

    assert plain == []
    assert after_reversal == list(run.events.values_list("number", flat=True)) == numbers
    assert partition_of(run.steps.first()) == f"{STEPS}_default"
    run.events.all().delete()
    run.steps.all().delete()
    list(maintain_partitions())
    assert partition_of(run_of_day(TODAY + timedelta(days=1)).events.first()) != f"{EVENTS}_default"
