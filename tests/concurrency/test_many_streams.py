"""Many concurrent streams on two web processes, beside other requests."""

import asyncio

import httpx

from tests.conftest import DRILL
from tests.served_accounts import serving_with_accounts

STREAMS = 50 if DRILL else 20


async def stream(client: httpx.AsyncClient) -> list[str]:
    async with client.stream("POST", "/api/agents/slow/stream", json={"messages": "word " * 20}) as answer:
        assert answer.status_code == 200, await answer.aread()
        return [line async for line in answer.aiter_lines() if line.startswith("data: ")]


async def send_other_requests(client: httpx.AsyncClient, streams: asyncio.Future) -> list[int]:
    """Return the statuses of reads and writes during the streams."""
    statuses = []
    while not streams.done():
        read = await client.get("/api/stored/agents/slow")
        write = await client.patch("/api/stored/agents/other", json={"description": str(len(statuses))})
        statuses += [read.status_code, write.status_code]
    return statuses


async def stream_beside_other_requests(base_url: str, key: str) -> tuple[list[list[str]], list[int]]:
    limits = httpx.Limits(max_connections=STREAMS + 2)
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=base_url, headers=headers, timeout=120, limits=limits) as client:
        for agent_id in ("slow", "other"):
            model = {"provider": "demo", "name": "echo", "delay": 0.1}
            body = {"id": agent_id, "name": agent_id, "instructions": "", "model": model}
            assert (await client.post("/api/stored/agents", json=body)).status_code == 201
        await client.post("/api/agents/slow/generate", json={"messages": "Warm up"})
        streams = asyncio.gather(*(stream(client) for _ in range(STREAMS)))
        statuses = await send_other_requests(client, streams)
        return await streams, statuses


def test_all_streams_are_read_beside_other_requests(tmp_path):
    # Each process has places for all: connections are not distributed evenly.
    room = dict.fromkeys(("RUNS_PER_USER", "RUNS_PER_AGENT", "RUN_STREAMS", "RUN_STREAMS_PER_USER"), "60")
    with serving_with_accounts(tmp_path / "var", **room) as copy:
        streams, statuses = asyncio.run(stream_beside_other_requests(copy.base_url, copy.keys["publisher"]))

    assert len(streams) == STREAMS
    assert all(lines[-1] == "data: [DONE]" and '"finish"' in lines[-2] for lines in streams)
    assert len(statuses) >= 10
    assert set(statuses) == {200}
