"""The pool of connections and processes: who shares, who waits, and who is woken."""

import asyncio

import pytest

from tools_app.shared_pool import PoolEntry, PoolLimits, SharedPool


class Pool(SharedPool):
    """A pool that notes which entries have ended."""

    def __init__(self, entries=1, entries_of_team=1):
        super().__init__(PoolLimits(entries, entries_of_team, idle_seconds=60))
        self.ended = []

    def end(self, entry):
        self.ended.append(entry.owner_id)

    async def take_for(self, key, owner_id="team"):
        return await self.take(key, owner_id, lambda: PoolEntry(owner_id))


async def wait_for_turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


def test_callers_with_equal_keys_share_an_entry():
    async def share():
        pool = Pool()
        return await pool.take_for("a"), await pool.take_for("a")

    first, second = asyncio.run(share())

    assert first is second
    assert first.users == 2


@pytest.mark.parametrize(("limits", "owner"), [((1, 5), "other"), ((5, 1), "team")], ids=["all", "of a team"])
def test_a_caller_waits_until_an_entry_is_idle_which_then_ends(limits, owner):
    async def wait():
        pool = Pool(*limits)
        entry = await pool.take_for("a")
        waiting = asyncio.create_task(pool.take_for("b", owner))
        await wait_for_turns()
        has_waited = not waiting.done()
        pool.release("a", entry)
        await asyncio.wait_for(waiting, 5)
        return has_waited, pool.ended, list(pool.entries)

    assert asyncio.run(wait()) == (True, ["team"], ["b"])


def test_a_caller_that_is_cancelled_gives_its_entry_back_and_wakes_the_others():
    async def cancel():
        pool = Pool()
        is_taken = asyncio.Event()

        async def use():
            entry = await pool.take_for("a")
            try:
                is_taken.set()
                await asyncio.sleep(60)
            finally:
                pool.release("a", entry)

        user = asyncio.create_task(use())
        await is_taken.wait()
        waiting = [asyncio.create_task(pool.take_for("b")) for _ in range(2)]
        await wait_for_turns()
        user.cancel()
        entries = await asyncio.wait_for(asyncio.gather(*waiting), 5)
        return entries[0] is entries[1]

    assert asyncio.run(cancel())


def test_a_discarded_entry_ends_with_its_last_user():
    async def discard():
        pool = Pool()
        entry = await pool.take_for("a")
        pool.discard("a", entry)
        before = list(pool.ended)
        other = await pool.take_for("a")
        pool.release("a", entry)
        return before, pool.ended, other is entry

    assert asyncio.run(discard()) == ([], ["team"], False)
