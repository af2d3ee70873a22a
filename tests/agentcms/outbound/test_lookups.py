"""Lookups of host names: a domain whose servers do not answer delays no other one."""

import asyncio
import socket
import threading

import pytest

from agentcms.outbound.transport import resolve_host

SLOW_NAMES = 40  # more than the threads that an event loop has


@pytest.fixture
def lookups(monkeypatch):
    """Let the names of one domain not be answered before the test ends. Return the names that were looked up."""
    names, ended = [], threading.Event()

    def getaddrinfo(host, port, **kwargs):
        names.append(host)
        if host.endswith("slow.example.org"):
            ended.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield names
    ended.set()


def test_names_that_are_not_answered_delay_no_other_name(lookups):
    async def run():
        slow = [asyncio.ensure_future(resolve_host(f"{n}.slow.example.org", 443)) for n in range(SLOW_NAMES)]
        addresses = await asyncio.wait_for(resolve_host("models.example.org", 443), 20)
        for lookup in slow:
            lookup.cancel()
        await asyncio.wait(slow)
        return addresses

    assert [str(address) for address in asyncio.run(asyncio.wait_for(run(), 30))] == ["192.0.2.1"]


def test_a_name_is_looked_up_once_at_a_time_and_for_each_who_still_waits(lookups):
    async def run():
        waiting = [asyncio.ensure_future(resolve_host("a.slow.example.org", 443)) for _ in range(100)]
        await asyncio.wait(waiting, timeout=0.1)
        waiting[0].cancel()
        await asyncio.wait(waiting, timeout=0.1)
        is_waiting = [not lookup.done() for lookup in waiting[1:]]
        for lookup in waiting:
            lookup.cancel()
        await asyncio.wait(waiting)
        return is_waiting

    assert all(asyncio.run(asyncio.wait_for(run(), 30)))
    assert lookups == ["a.slow.example.org"]
