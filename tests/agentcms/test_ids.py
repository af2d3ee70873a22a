"""UUIDs of version 7."""

import time
import uuid

from agentcms.ids import uuid7


def milliseconds():
    return time.time_ns() // 1_000_000


def test_an_id_contains_its_creation_time():
    before = milliseconds()
    made = uuid7()
    after = milliseconds()

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before <= made.int >> 80 <= after


def test_ids_sort_by_creation_time():
    first = uuid7()
    now = milliseconds()
    while milliseconds() == now:
        pass

    assert first < uuid7()
    assert str(first) < str(uuid7())


def test_ids_are_unique():
    assert len({uuid7() for _ in range(10_000)}) == 10_000
