"""The queue of SQLite writers: order, timeout and release of locks."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from django.db import OperationalError
from django.db.utils import ConnectionHandler

from agentcms.api.exceptions import api_error
from agentcms.db.backends.sqlite3.base import DatabaseWrapper, WriterQueue
from agentcms.db.database_settings import sqlite_config
from agentcms.server.processes import PROJECT
from tests.served import wait_until

LOCK_TIMEOUT = 20

HOLD_LOCK = """
import sys
from agentcms.db.backends.sqlite3.base import WriterQueue
WriterQueue(sys.argv[1]).acquire(10)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "queue")


def count_waiting(path):
    """Return the number of processes that wait for a lock on the file."""
    inode = f":{os.stat(path).st_ino} "
    with open("/proc/locks") as locks:
        return sum(inode in line and "->" in line for line in locks)


def test_writers_proceed_in_the_order_of_their_requests(path):
    first = WriterQueue(path)
    first.acquire(10)
    served = []

    def write(number):
        queue = WriterQueue(path)
        queue.acquire(30)
        served.append(number)
        queue.release()

    threads = [threading.Thread(target=write, args=[number]) for number in range(8)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        wait_until(lambda number=number: count_waiting(path) == number, what="one more in line")
    first.release()
    for thread in threads:
        thread.join(30)

    assert served == list(range(8))


def test_a_writer_that_waits_too_long_gets_an_error(path):
    WriterQueue(path).acquire(10)

    with pytest.raises(OperationalError) as refused:
        WriterQueue(path).acquire(0.05)

    assert api_error(refused.value).status == 503


def test_a_writer_that_gave_up_blocks_no_other(path):
    first, second, third = WriterQueue(path), WriterQueue(path), WriterQueue(path)
    first.acquire(10)
    with pytest.raises(OperationalError):
        second.acquire(0.05)

    first.release()

    third.acquire(10)
    third.release()
    second.acquire(10)


def test_the_lock_of_a_killed_process_is_released(path):
    command = [sys.executable, "-c", HOLD_LOCK, path]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(OperationalError):
            WriterQueue(path).acquire(0.05)

        os.kill(holder.pid, signal.SIGKILL)

        WriterQueue(path).acquire(10)


@pytest.fixture
def connection(tmp_path, django_db_blocker):
    """Return a connection to a database of its own, with a table."""
    with django_db_blocker.unblock():
        config = sqlite_config(str(tmp_path / "agents.sqlite3"), LOCK_TIMEOUT)
        connection = ConnectionHandler({"default": config})["default"]
        connection.inc_thread_sharing()
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE names (name TEXT)")
            cursor.execute("INSERT INTO names VALUES ('Porter')")
        yield connection
        connection.close()


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_every_end_of_a_transaction_releases_the_lock(connection, end):
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    path = connection.queue.path
    with pytest.raises(OperationalError):
        WriterQueue(path).acquire(0.05)
    getattr(connection, end)()

    WriterQueue(path).acquire(10)


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO names VALUES ('Cook')", "UPDATE names SET name = 'Cook'", "DELETE FROM names", "delete from names"],
)
def test_a_write_without_a_transaction_waits_for_its_turn(connection, statement):
    path = connection.queue.path
    first = WriterQueue(path)
    first.acquire(10)

    def write():
        with connection.cursor() as cursor:
            cursor.execute(statement)

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: count_waiting(path) == 1, what="the writer in line")
    with connection.cursor() as cursor:
        assert cursor.execute("SELECT name FROM names").fetchall() == [("Porter",)]  # reads do not queue
    first.release()
    writer.join(30)

    with connection.cursor() as cursor:
        assert cursor.execute("SELECT name FROM names").fetchall() != [("Porter",)]
    WriterQueue(path).acquire(10)


def test_a_write_that_fails_releases_the_lock(connection):
    with connection.cursor() as cursor, pytest.raises(OperationalError):
        cursor.execute("INSERT INTO nowhere VALUES (1)")

    WriterQueue(connection.queue.path).acquire(10)


def test_connections_to_a_database_that_was_read_only_are_opened_again(connection, monkeypatch):
    monkeypatch.setattr(DatabaseWrapper, "is_read_only", False)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
        with pytest.raises(OperationalError) as refused:
            cursor.execute("DELETE FROM names")

    connection.close_if_unusable_or_obsolete()  # as at the end of a request

    assert api_error(refused.value).status == 503
    assert connection.connection is None
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    assert not DatabaseWrapper.is_read_only


def test_a_queue_that_cannot_be_opened_is_an_outage(tmp_path, monkeypatch):
    monkeypatch.setattr(DatabaseWrapper, "is_read_only", False)

    with pytest.raises(OperationalError) as refused:
        WriterQueue(str(tmp_path / "gone" / "queue"))

    assert api_error(refused.value).status == 503
    assert DatabaseWrapper.is_read_only


def test_a_write_that_must_not_wait_leaves_the_line_at_once(connection):
    WriterQueue(connection.queue.path).acquire(10)
    began = time.monotonic()

    with connection.waiting_at_most(0.01), connection.cursor() as cursor, pytest.raises(OperationalError):
        cursor.execute("DELETE FROM names")

    assert time.monotonic() - began < LOCK_TIMEOUT / 2
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA busy_timeout").fetchall() == [(LOCK_TIMEOUT * 1000,)]


def test_a_database_that_fails_meanwhile_leaves_no_short_timeout_behind(connection):
    def fail(execute, sql, params, many, context):
        raise OperationalError("disk I/O error")

    failing = connection.execute_wrapper(fail)
    with failing, pytest.raises(OperationalError, match="disk"), connection.waiting_at_most(0.01):
        pass

    assert connection.lock_timeout == LOCK_TIMEOUT


def test_a_thread_that_waits_too_late_leaves_no_lock_behind(connection, monkeypatch):
    """The thread may not have begun to wait when its writer gives up and opens the file again."""
    first, second = (WriterQueue(connection.queue.path) for _ in range(2))
    first.acquire(10)
    threads = []

    def lock_late(file, operation):
        if operation == fcntl.LOCK_EX:
            threads.append(threading.current_thread())
            time.sleep(0.1)
        flock(file, operation)

    flock = fcntl.flock
    monkeypatch.setattr("fcntl.flock", lock_late)
    with pytest.raises(OperationalError):
        second.acquire(0.01)
    first.release()
    threads[0].join(10)

    WriterQueue(connection.queue.path).acquire(1)
