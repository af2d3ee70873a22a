"""The age of records that a process caches."""

import time

import pytest

from agentcms.db.cached_table import CachedTable


def test_the_age_is_counted_from_the_beginning_of_the_reading():
    """A change is not seen by a reading that began before it. It must not be hidden for longer than a second."""
    readings = []

    def read_slowly():
        readings.append(time.monotonic())
        time.sleep(0.2)
        return {"a": len(readings)}

    table = CachedTable(read_slowly, str, seconds=0.3)
    first, cached = table.find("a"), table.find("a")
    while table.find("a") == 1:
        time.sleep(0.001)

    assert (first, cached) == (1, 1)
    assert readings[1] - readings[0] < 0.49


@pytest.mark.parametrize("change", ["reload", "invalidate"])
def test_a_reading_that_began_before_a_change_does_not_hide_it(change):
    stored = {"a": 1}
    hooks = []

    def read():
        records = dict(stored)
        if hooks:  # another thread changes the table before this reading ends
            hooks.pop()()
        return records

    def change_meanwhile():
        stored["a"] = 2
        getattr(table, change)()

    table = CachedTable(read, str, seconds=60)
    hooks.append(change_meanwhile)

    assert table.find("a") == 1
    assert table.find("a") == 2
