"""Blocking calls in threads beside the event loop."""

import asyncio
import threading

import pytest
from django.db import connections

from runs_app.engine.thread_pools import run_blocking, run_db
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
