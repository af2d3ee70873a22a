"""Statements of compiled queries and write batches on PostgreSQL, which libpq executes without a cursor of psycopg."""

import threading
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import (
    DataError,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    connection,
    transaction,
)
from psycopg.types.json import Jsonb

from agentcms.db.backends.postgresql.prepared_statements import numbered_placeholders
from tests.agentcms.db.separate_connection import separate_connection

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]

THRESHOLD = 3  # executions before the server prepares a statement
VALUES = [
    ("text", "100 % 'quoted' \\ é 漢 🎈"),
    ("text", ""),
    ("text", None),
    ("smallint", 1),
    ("bigint", 2**40),
    ("numeric", Decimal("1.50")),
    ("boolean", True),
    ("double precision", 0.1),
    ("timestamptz", datetime(2026, 1, 31, 9, 30, 0, 123456, tzinfo=UTC)),
    ("uuid", UUID(int=7)),
    ("text[]", ["a", None, "{b}"]),
    ("bytea", b"\x00\xff"),
]


@pytest.fixture
def other_connection():
    with separate_connection() as other:
        yield other


@pytest.fixture
def unprepared_connection():
    with separate_connection(use_prepared_statements=False) as other:
        yield other


@pytest.fixture
def numbers_table():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE numbers (number smallint PRIMARY KEY)")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE numbers")


def prepared_names(database, sql):
    """Return the names under which the server has prepared a statement of this connection."""
    select = "SELECT name FROM pg_prepared_statements WHERE statement = %s ORDER BY prepare_time"
    with database.cursor() as cursor:
        cursor.execute(select, [numbered_placeholders(sql)])
        return [name for (name,) in cursor.fetchall()]


@pytest.mark.parametrize(("type_name", "value"), VALUES)
def test_rows_equal_those_of_a_cursor(other_connection, type_name, value):
    sql = f"SELECT %s::{type_name}, 7 %% 4"
    with other_connection.cursor() as cursor:
        cursor.execute(sql, [value])
        expected = cursor.fetchall()

    rows = [other_connection.run_statement(sql, [value]) for _ in range(THRESHOLD + 2)]  # also when it is prepared

    assert rows == [expected] * (THRESHOLD + 2)
    assert expected == [(value, 3)]


def test_json_is_read_as_django_reads_it(other_connection):
    rows = other_connection.run_statement("SELECT %s::jsonb", [Jsonb({"a": [1, "é"]})])

    with other_connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb", [Jsonb({"a": [1, "é"]})])
        assert rows == cursor.fetchall()


def test_a_statement_is_prepared_when_it_was_executed_often(other_connection):
    sql = "SELECT %s::int + 1"

    for number in range(THRESHOLD):
        assert other_connection.run_statement(sql, [number]) == [(number + 1,)]
    assert prepared_names(other_connection, sql) == []

    for number in range(THRESHOLD):
        assert other_connection.run_statement(sql, [number]) == [(number + 1,)]
    assert len(prepared_names(other_connection, sql)) == 1


def test_values_of_another_type_have_a_prepared_statement_of_their_own(other_connection):
    sql = "SELECT %s + 0"
    for number in [*[1] * (THRESHOLD + 1), *[2**40] * (THRESHOLD + 1)]:
        assert other_connection.run_statement(sql, [number]) == [(number,)]

    assert len(prepared_names(other_connection, sql)) == 2


def test_statements_that_are_sent_together_are_prepared_once(other_connection):
    sql = "SELECT %s::int + 3"
    for _ in range(THRESHOLD):
        other_connection.run_statements([(sql, [1])] * 5)

    assert len(prepared_names(other_connection, sql)) == 1


def test_a_statement_that_is_not_sent_is_prepared_once(other_connection):
    """The statement after it has a value that no text of PostgreSQL can have."""
    sql = "SELECT %s::text"
    for _ in range(THRESHOLD):
        other_connection.run_statement(sql, ["a"])

    for _ in range(THRESHOLD):
        with pytest.raises(DataError, match="NUL"):
            other_connection.run_statements([(sql, ["a"]), (sql, ["a\0"])])

    assert len(prepared_names(other_connection, sql)) == 1


def test_nothing_is_prepared_for_a_pooler_that_cannot(unprepared_connection):
    sql = "SELECT %s::int + 2"
    for number in range(THRESHOLD + 2):
        assert unprepared_connection.run_statement(sql, [number]) == [(number + 2,)]

    assert prepared_names(unprepared_connection, sql) == []


def test_a_connection_prepares_a_limited_number_of_statements(other_connection):
    limit = other_connection.connection.prepared_max if other_connection.connection else 100
    for number in range(limit + 5):
        for _ in range(THRESHOLD + 1):
            assert other_connection.run_statement(f"SELECT {number}", []) == [(number,)]

    with other_connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchall() == [(limit + 1,)]  # psycopg ends one when the next is executed


def test_a_rollback_ends_prepared_statements(other_connection, numbers_table):
    """psycopg deallocates all, because a plan may be of a table that was rolled back."""
    sql = "SELECT number FROM numbers WHERE number = %s"
    for _ in range(THRESHOLD + 1):
        other_connection.run_statement(sql, [1])
    other_connection.set_autocommit(False)
    other_connection.run_statement(sql, [1])

    other_connection.rollback()

    assert prepared_names(other_connection, sql) == []
    assert other_connection.run_statements([(sql, [1])] * 2) == [[], []]
    other_connection.rollback()


def test_a_column_may_get_another_type(other_connection, numbers_table):
    """As in a migration while other processes serve."""
    sql = "SELECT number FROM numbers WHERE number = %s"
    for _ in range(THRESHOLD + 1):
        assert other_connection.run_statement(sql, [1]) == []
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE numbers ALTER number TYPE bigint")

    with pytest.raises(NotSupportedError, match="must not change result type"):
        other_connection.run_statement(sql, [1])

    for _ in range(THRESHOLD + 2):
        assert other_connection.run_statement(sql, [1]) == []


def test_errors_are_those_of_django(other_connection, numbers_table):
    insert = "INSERT INTO numbers VALUES (%s) RETURNING number"
    with pytest.raises(DataError, match="division by zero"):
        other_connection.run_statement("SELECT 1 / %s::int", [0])
    other_connection.set_autocommit(False)

    with pytest.raises(IntegrityError, match="duplicate key"):
        other_connection.run_statements([(insert, [1]), (insert, [1]), (insert, [2])])

    other_connection.rollback()
    other_connection.set_autocommit(True)
    assert other_connection.run_statement("SELECT number FROM numbers", []) == []


def test_the_first_statement_begins_the_transaction(other_connection, numbers_table):
    insert = "INSERT INTO numbers VALUES (%s) RETURNING number"
    other_connection.set_autocommit(False)

    assert other_connection.run_statement(insert, [1]) == [(1,)]
    other_connection.rollback()
    assert other_connection.run_statements([(insert, [2]), (insert, [3])]) == [[(2,)], [(3,)]]
    other_connection.commit()

    other_connection.set_autocommit(True)
    assert other_connection.run_statement("SELECT number FROM numbers ORDER BY 1", []) == [(2,), (3,)]


def test_large_statements_and_results_pass_each_other(other_connection):
    """Otherwise both sides would wait until the other one reads."""
    text = "x" * 2_000_000
    other_connection.set_autocommit(False)

    results = other_connection.run_statements([("SELECT %s::text", [text])] * 10)

    other_connection.rollback()
    assert results == [[(text,)]] * 10


@pytest.mark.parametrize("together", [False, True])
def test_a_connection_that_the_server_ends_is_an_operational_error(other_connection, together):
    [(process,)] = other_connection.run_statement("SELECT pg_backend_pid()", [])
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [process])

    with pytest.raises(OperationalError):
        other_connection.run_statements([("SELECT 1", [])] * (2 if together else 1))

    other_connection.close()
    assert other_connection.run_statement("SELECT 3", []) == [(3,)]


@pytest.mark.parametrize("together", [False, True])
def test_other_threads_run_while_a_statement_waits(other_connection, together):
    other_connection.ensure_connection()
    count, is_done = 0, threading.Event()

    def wait():
        sleep = ("SELECT pg_sleep(0.5)::text", [])
        if together:
            other_connection.run_statements([sleep, ("SELECT 1", [])])
        else:
            other_connection.run_statement(*sleep)
        is_done.set()

    other_connection.inc_thread_sharing()
    thread = threading.Thread(target=wait)
    thread.start()
    while not is_done.wait(0.01):
        count += 1
    thread.join()
    other_connection.dec_thread_sharing()

    assert count > 20


def test_a_transaction_of_django_commits_and_rolls_back(numbers_table):
    insert = "INSERT INTO numbers VALUES (%s) RETURNING number"
    with transaction.atomic():
        connection.run_statement(insert, [1])
        with pytest.raises(IntegrityError), transaction.atomic():
            connection.run_statements([(insert, [2]), (insert, [1])])
        connection.run_statements([(insert, [3]), (insert, [4])])

    assert connection.run_statement("SELECT number FROM numbers ORDER BY 1", []) == [(1,), (3,), (4,)]


@pytest.fixture
def deferred_table(numbers_table):
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE deferred (number smallint REFERENCES numbers DEFERRABLE INITIALLY DEFERRED)",
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE deferred")


def test_a_constraint_that_fails_at_the_commit_is_an_integrity_error(deferred_table):
    hooks = []

    def save(number):
        with transaction.atomic():
            transaction.on_commit(lambda: hooks.append(number))
            connection.run_statement("INSERT INTO deferred VALUES (%s) RETURNING number", [number])

    with pytest.raises(IntegrityError, match="violates foreign key"):
        save(1)
    connection.run_statement("INSERT INTO numbers VALUES (%s) RETURNING number", [2])
    save(2)

    assert connection.run_statement("SELECT number FROM deferred", []) == [(2,)]
    assert hooks == [2]


def test_a_connection_that_is_lost_before_the_commit_is_an_operational_error(numbers_table):
    def save():
        with transaction.atomic():
            connection.run_statement("INSERT INTO numbers VALUES (%s) RETURNING number", [1])
            [(process,)] = connection.run_statement("SELECT pg_backend_pid()", [])
            end_connection(process)

    with pytest.raises(OperationalError):
        save()

    connection.close()
    assert connection.run_statement("SELECT number FROM numbers", []) == []


def end_connection(process):
    """End a connection from another one."""

    def end():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [process])
        connection.close()

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
