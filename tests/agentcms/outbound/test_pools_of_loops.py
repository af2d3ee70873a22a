"""Connection pools of event loops that begin and end in several threads at once, as requests of the web server do."""

import asyncio
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx2

from agentcms.outbound import transport as transports
from agentcms.outbound.transport import CheckedTransport

THREADS, LOOPS = 8, 150


class EchoPool:
    """A pool without connections."""

    async def handle_async_request(self, request):
        return httpx2.Response(204)


def test_loops_of_several_threads_share_a_transport(monkeypatch):
    monkeypatch.setattr(transports, "build_pool", EchoPool)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    transport = CheckedTransport()
    loops = []  # not collected at once, as those of tracebacks are not

    async def send():
        loops.append(asyncio.get_running_loop())
        return (await transport.handle_async_request(httpx2.Request("GET", "http://example.org"))).status_code

    def send_from_new_loops():
        return {asyncio.run(send()) for _ in range(LOOPS)}

    try:
        with ThreadPoolExecutor(THREADS) as pool:
            statuses = [future.result() for future in [pool.submit(send_from_new_loops) for _ in range(THREADS)]]
    finally:
        sys.setswitchinterval(interval)

    loops.clear()
    gc.collect()
    assert statuses == [{204}] * THREADS
    assert len(transport._pools) <= THREADS
