"""Blocking calls in threads beside the event loop."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from runs_app.building.processors import Processor
from runs_app.engine import thread_pools
from runs_app.engine.thread_pools import MAX_AWAITED_CALLS, TOOL_THREADS, run_blocking, run_db
from tests.factories import UserFactory


@pytest.mark.django_db(transaction=True)  # its thread returns connections of earlier tests
def test_a_blocking_tool_does_not_block_the_event_loop():
    async def both():
        done = threading.Event()
        blocked = asyncio.ensure_future(run_blocking(done.wait, 10))
        await asyncio.sleep(0)
        done.set()
        return await blocked

    assert asyncio.run(both()) is True


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres_only
def test_a_connection_returns_to_the_pool():
    user = UserFactory()

    def read():
        type(user).objects.get(pk=user.pk)
        return connections["default"]

    used = asyncio.run(run_db(read))

    assert used.connection is None


@pytest.mark.django_db(transaction=True)
def test_queries_run_in_a_thread():
    user = UserFactory()

    loaded = asyncio.run(run_db(type(user).objects.get, pk=user.pk))

    assert loaded == user


@pytest.mark.django_db(transaction=True)
def test_slow_tools_do_not_delay_the_runs_of_others():
    """Their processors, and the results of their tools, need a thread only for a moment."""
    shout = Processor("shout", lambda text: text.upper(), {})

    async def process_beside_slow_tools():
        done = threading.Event()
        tools = [asyncio.ensure_future(run_blocking(done.wait, 20)) for _ in range(40)]
        await asyncio.sleep(0)
        try:
            return await asyncio.wait_for(shout(["hello"]), 5)
        finally:
            done.set()
            await asyncio.gather(*tools)

    assert asyncio.run(process_beside_slow_tools()) == ["HELLO"]


@pytest.fixture
def free_tool_threads(monkeypatch):
    """Use threads that no function of an earlier test takes."""
    with ThreadPoolExecutor(TOOL_THREADS) as pool:
        monkeypatch.setattr(thread_pools, "_tool_pool", pool)
        monkeypatch.setattr(thread_pools, "_abandoned", set())
        yield


@pytest.mark.usefixtures("free_tool_threads")
def test_functions_that_hang_after_their_calls_were_given_up_leave_threads_to_others(caplog):
    release, started = threading.Event(), []

    def hang():
        started.append(1)
        release.wait(60)

    async def work_beside_hanging_functions():
        hanging = [asyncio.create_task(run_blocking(hang)) for _ in range(40)]
        for count in (MAX_AWAITED_CALLS, 40):  # the last ones get a slot when the others are given up
            while len(started) < count:
                await asyncio.sleep(0.01)
            for task in hanging[:count]:
                task.cancel()
            await asyncio.wait(hanging[:count])
        return await run_blocking(str.upper, "hello")

    try:
        assert asyncio.run(asyncio.wait_for(work_beside_hanging_functions(), 10)) == "HELLO"
    finally:
        release.set()

    assert "hang goes on after its call was given up" in caplog.text
