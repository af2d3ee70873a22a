"""UUIDs of version 7 and 8."""

import time
import uuid

from agentcms.ids import derive_uuid, uuid7


def milliseconds():
    return time.time_ns() // 1_000_000


def test_an_id_contains_its_creation_time():
    before = milliseconds()
    made = uuid7()
    after = milliseconds()

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before <= made.int >> 80 <= after


def test_a_derived_id_is_the_same_each_time_and_has_the_time_of_its_parent():
    parent = uuid7()

    derived = derive_uuid(parent, "call-1")

    assert derived == derive_uuid(parent, "call-1")
    assert derived != derive_uuid(parent, "call-2")
    assert derived.bytes[:6] == parent.bytes[:6]
    assert (derived.variant, derived.version) == (uuid.RFC_4122, 8)


def test_ids_sort_by_creation_time():
    first = uuid7()
    now = milliseconds()
    while milliseconds() == now:
        pass

    assert first < uuid7()
    assert str(first) < str(uuid7())


def test_ids_are_unique():
    assert len({uuid7() for _ in range(10_000)}) == 10_000
