"""Clients that send their request bodies slowly, or never."""

import asyncio
import json
import socket
import statistics
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import DRILL
from tests.served import Served
from tests.served_accounts import serving_with_accounts

CONNECTIONS, SECONDS = (500, 60) if DRILL else (200, 4)
BODY_TIMEOUT = 10 if DRILL else 3
AGENTS = "/api/stored/agents"
# More threads than this are not needed to read bodies. The slow connections of one kind would occupy all of them.
THREADS = {"WEB_WORKERS": "2", "WEB_THREADS": "4", "RUN_STREAMS": "4"}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("slow") / "var"
    with serving_with_accounts(folder, REQUEST_BODY_TIMEOUT=str(BODY_TIMEOUT), **THREADS) as copy:
        with copy.client(copy.keys["publisher"]) as client:
            model = {"provider": "demo", "name": "echo"}
            client.post(AGENTS, json={"id": "a", "name": "A", "instructions": "", "model": model}).raise_for_status()
        yield copy


def head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


def slow_requests(copy: Served) -> dict[str, tuple[bytes, bytes]]:
    """Return kinds of slow requests: what is sent at once, and the piece that follows every second."""
    key = f"Authorization: Bearer {copy.keys['publisher']}"
    json_type, form = "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"
    return {
        "chunked without a key": (head("POST", AGENTS, json_type, "Transfer-Encoding: chunked"), b"1\r\n \r\n"),
        "a sign-in form": (head("POST", "/sign-in", form, "Content-Length: 1000"), b"x"),
        "an edit with a key": (head("PATCH", f"{AGENTS}/a", key, json_type, "Content-Length: 1000"), b" "),
        "an edit that never begins": (head("PATCH", f"{AGENTS}/a", key, json_type, "Content-Length: 1000"), b""),
        "chunked with a key": (head("POST", AGENTS, key, json_type, "Transfer-Encoding: chunked"), b"1\r\n \r\n"),
        "an import": (head("POST", "/api/stored/agent-import", key, "Content-Length: 9000"), b" "),
        "headers": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"X"),
    }


async def hold_open(copy: Served, request: bytes, piece: bytes, until: float) -> bytes:
    """Send a request slowly, and return what was answered."""
    answer = b""
    reader, writer = await asyncio.open_connection("127.0.0.1", copy.port)
    try:
        writer.write(request)
        while time.monotonic() < until:
            try:
                async with asyncio.timeout(1):
                    if not (received := await reader.read(4096)):
                        break
                    answer += received
            except TimeoutError:
                writer.write(piece)
    except ConnectionError:
        pass
    finally:
        writer.close()
    return answer


async def attack(copy: Served) -> tuple[list[float], list[float]]:
    """Hold slow connections of all kinds open. Return the seconds of probes and of reads meanwhile."""
    until = time.monotonic() + SECONDS + 1
    kinds = list(slow_requests(copy).values())
    slow = [asyncio.create_task(hold_open(copy, *kinds[i % len(kinds)], until)) for i in range(CONNECTIONS)]
    await asyncio.sleep(1)
    limits = httpx.Limits(max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {copy.keys['viewer']}"}
    async with httpx.AsyncClient(base_url=copy.base_url, limits=limits, headers=headers, timeout=30) as client:
        probes = asyncio.create_task(measure(client, ["/healthz", "/readyz"], until))
        reads = asyncio.create_task(measure(client, [f"{AGENTS}/a"], until))
        results = await probes, await reads
    await asyncio.gather(*slow)
    return results


async def measure(client: httpx.AsyncClient, paths: list[str], until: float) -> list[float]:
    """Send requests until a time. Return the seconds of each."""
    seconds = []
    while time.monotonic() < until:
        for path in paths:
            began = time.monotonic()
            (await client.get(path)).raise_for_status()
            seconds.append(time.monotonic() - began)
            await asyncio.sleep(0.05)
    return seconds


def test_slow_clients_delay_nobody_else(copy):
    probes, reads = asyncio.run(attack(copy))

    # With the bodies read in threads, nothing is answered before the slow clients give up.
    if DRILL:
        assert max(probes) < 1
        assert statistics.quantiles(reads, n=20)[-1] < 0.5
    # Beside other tests, the median: other processes may delay a single request.
    assert statistics.median(probes) < 1
    assert statistics.median(reads) < 1


async def answers_to_slow_requests(copy: Served) -> dict[str, tuple[bytes, float]]:
    """Send one slow request of each kind. Return each answer and the seconds until the connection was closed."""
    began = time.monotonic()

    async def answer(request: bytes, piece: bytes) -> tuple[bytes, float]:
        received = await hold_open(copy, request, piece, began + BODY_TIMEOUT + 20)
        return received, time.monotonic() - began

    kinds = slow_requests(copy)
    return dict(zip(kinds, await asyncio.gather(*(answer(*kind) for kind in kinds.values())), strict=True))


def test_a_slow_body_is_refused(copy):
    answers = asyncio.run(answers_to_slow_requests(copy))

    without_key, seconds = answers.pop("chunked without a key")
    assert without_key.startswith(b"HTTP/1.1 401 ")
    assert seconds < BODY_TIMEOUT  # the key is checked before the body is read
    del answers["headers"]  # the server itself closes these connections after 30 seconds
    for kind, (answer, seconds) in answers.items():
        assert answer.startswith(b"HTTP/1.1 408 "), kind
        assert BODY_TIMEOUT <= seconds < BODY_TIMEOUT + 15, kind
    body = json.loads(answers["an edit with a key"][0].partition(b"\r\n\r\n")[2])
    assert body["code"] == "request_timeout"
    assert "4,096 bytes a second" in body["error"]


def test_a_body_at_the_minimum_rate_is_accepted(copy):
    """Send for longer than the timeout alone allows."""
    body = json.dumps({"instructions": "slow " * 6000}).encode()
    key = f"Authorization: Bearer {copy.keys['publisher']}"
    pieces = [body[start : start + 4096] for start in range(0, len(body), 4096)]

    with socket.create_connection(("127.0.0.1", copy.port), timeout=30) as connection:
        headers = [key, "Content-Type: application/json", f"Content-Length: {len(body)}"]
        connection.sendall(head("PATCH", f"{AGENTS}/a", *headers))
        for piece in pieces:
            time.sleep((BODY_TIMEOUT + 1) / len(pieces))
            connection.sendall(piece)
        answer = connection.recv(4096)

    assert answer.startswith(b"HTTP/1.1 200 ")
    with copy.client(copy.keys["publisher"]) as client:
        assert client.get(f"{AGENTS}/a").json()["instructions"] == "slow " * 6000
