"""Responses in countless tiny chunks, while other tasks of the event loop wait for their turn."""

import asyncio
from ipaddress import ip_network

import httpx2

from agentcms.outbound.transport import CheckedTransport

CHUNKS = 50_000


async def send_chunks(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    writer.write(b"1\r\nx\r\n" * CHUNKS + b"0\r\n\r\n")
    await writer.drain()
    writer.close()


async def most_chunks_in_a_turn():
    """Read a response. Return the most chunks that were read while no other task had its turn."""
    turn, chunks = 0, {}

    async def count_turns():
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(count_turns())
    async with await asyncio.start_server(send_chunks, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        client = httpx2.AsyncClient(transport=CheckedTransport(), trust_env=False)
        async with client, client.stream("GET", url) as response:
            async for _ in response.aiter_raw():
                chunks[turn] = chunks.get(turn, 0) + 1
    others.cancel()
    assert sum(chunks.values()) == CHUNKS
    return max(chunks.values())


def test_other_tasks_have_their_turn_after_a_few_kilobytes(settings):
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]

    assert asyncio.run(most_chunks_in_a_turn()) < 2000
