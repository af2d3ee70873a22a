"""The write slots of agents within a process."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from agents_app.editing.write_queue import agent_write_slot


@pytest.fixture
def slot_held_by_other_thread():
    """Hold the write slot of the agent `a` in another thread."""
    has, let_go = Event(), Event()

    def hold():
        with agent_write_slot("a"):
            has.set()
            assert let_go.wait(30)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(hold)
        assert has.wait(30)
        yield let_go
        let_go.set()
        done.result()


def test_a_second_writer_waits_for_the_first(slot_held_by_other_thread):
    came = []

    def write():
        with agent_write_slot("a"):
            came.append("second")

    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(write)
        assert not second.done()
        came.append("first")
        slot_held_by_other_thread.set()
        second.result(30)

    assert came == ["first", "second"]


def test_a_writer_that_waits_too_long_proceeds_without_the_slot(slot_held_by_other_thread, settings):
    settings.DATABASE_LOCK_TIMEOUT = 0.05

    came = []
    for number in range(2):
        with agent_write_slot("a"):
            came.append(number)

    assert came == [0, 1]  # the holder releases its slot without an error


def test_a_failed_write_releases_its_slot(settings):
    settings.DATABASE_LOCK_TIMEOUT = 30
    with pytest.raises(ValueError, match="went wrong"), agent_write_slot("a"):
        raise ValueError("It went wrong.")

    def write():
        with agent_write_slot("a"):
            return True

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(write).result(20)
