"""Broken and unusual requests, and clients that do not read, over connections to a served copy."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import psutil
import pytest
from django.conf import settings

from tests.operations.running_copy import run_inside
from tests.served import wait_until

AGENTS = "/api/stored/agents"
FILE_SIZE = 60_000_000  # of a download, far above what the kernel buffers


def agent(agent_id: str) -> dict:
    return {"id": agent_id, "name": "A", "instructions": "", "model": {"provider": "demo", "name": "echo"}}


def head(copy, method: str, path: str, *headers: str) -> bytes:
    key = f"Authorization: Bearer {copy.keys['publisher']}"
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", key, *headers, "", ""]).encode()


def connect(copy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", copy.port), timeout=30)


def exchange(copy, request: bytes, *, is_cut_off: bool = False) -> bytes:
    """Send bytes. Return all that is answered until the server closes the connection."""
    answer = bytearray()
    with connect(copy) as connection:
        connection.sendall(request)
        if is_cut_off:
            connection.shutdown(socket.SHUT_WR)
        while received := connection.recv(65536):
            answer += received
    return bytes(answer)


# What follows a complete body in a chunk: the end is missing, is not valid, or has trailers.
@pytest.mark.parametrize(
    ("end", "is_cut_off"),
    [(b"", True), (b"5\r\nab", True), (b"ZZ\r\n", False), (b"0\r\nContent-Length: 3\r\n\r\n", False)],
)
def test_a_request_with_an_incomplete_body_changes_nothing(served, end, is_cut_off):
    agent_id = f"incomplete-{uuid4().hex[:12]}"
    body = json.dumps(agent(agent_id)).encode()
    request = head(served, "POST", AGENTS, "Content-Type: application/json", "Transfer-Encoding: chunked")

    chunks = b"%x\r\n%s\r\n%s" % (len(body), body, end)
    answer = exchange(served, request + chunks, is_cut_off=is_cut_off)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"incomplete_body" in answer
    with served.client(served.keys["publisher"]) as client:
        assert client.get(f"{AGENTS}/{agent_id}").status_code == 404


@pytest.mark.parametrize("value", ['"é"', "é"])
def test_a_condition_that_is_not_ascii_is_not_met(served, value):
    agent_id = f"condition-{uuid4().hex[:12]}"
    body = b'{"name": "B"}'
    headers = [
        f"If-Match: {value}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    with served.client(served.keys["publisher"]) as client:
        client.post(AGENTS, json=agent(agent_id)).raise_for_status()

        answer = exchange(served, head(served, "PATCH", f"{AGENTS}/{agent_id}", *headers) + body)

        assert answer.startswith(b"HTTP/1.1 412 ")
        assert client.get(f"{AGENTS}/{agent_id}").json()["name"] == "A"


def test_an_upload_without_a_session_is_refused_before_it_arrives(served):
    request = (
        b"POST /exchange/import HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        b"Content-Length: 200000000\r\n\r\n"
    )
    with connect(served) as connection:
        connection.sendall(request)
        began = time.monotonic()

        answer = connection.recv(4096)

        assert answer.startswith(b"HTTP/1.1 302 ")
        assert time.monotonic() - began < 8  # without the check, a 408 after 10 seconds


def test_a_client_that_reads_after_sending_learns_that_its_body_is_too_large(served):
    length = 20_000_000  # far more than the kernel buffers
    headers = ("Content-Type: application/json", f"Content-Length: {length}", "Connection: close")

    answer = exchange(served, head(served, "POST", AGENTS, *headers) + b"x" * length)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"too_large" in answer


def test_a_known_sender_learns_that_its_body_is_far_too_large(served):
    length = 80_000_000
    headers = ("Content-Type: application/json", f"Content-Length: {length}", "Connection: close")

    answer = exchange(served, head(served, "POST", AGENTS, *headers) + b"x" * length)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"too_large" in answer


def test_a_file_of_items_may_be_larger_than_other_bodies(served):
    line = json.dumps({"input": "x" * 9000}) + "\n"
    headers = {"Content-Type": "application/x-ndjson"}
    with served.client(served.keys["publisher"]) as client:
        dataset = client.post("/api/datasets", json={"name": "Large"}).raise_for_status().json()

        answer = client.post(f"/api/datasets/{dataset['id']}/import", content=line * 550, headers=headers)

    assert len(line) * 550 > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert answer.status_code == 202, answer.text


def test_http_2_is_refused(served):
    """The server waits for an HTTP/2 client without a limit."""
    answer = exchange(served, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")

    assert answer == b"" or answer.startswith(b"HTTP/1.1 ")


@contextmanager
def idle_readers(copy, path: str) -> Iterator[int]:
    """Request a large response four times without reading it. Yield by how many bytes the web server grows."""
    before = memory_of_web(copy)
    with ExitStack() as stack:
        for _ in range(4):
            connection = stack.enter_context(connect(copy))
            connection.sendall(head(copy, "GET", path))
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        time.sleep(3)
        yield memory_of_web(copy) - before


def test_downloads_that_nobody_reads_use_no_memory(served):
    with served.client(served.keys["publisher"]) as client:
        client.post(AGENTS, json=agent(f"exported-{uuid4().hex[:12]}")).raise_for_status()
        job = client.post("/api/stored/agent-export", json={}).raise_for_status().json()["id"]
        wait_until(lambda: client.get(f"/api/jobs/{job}").json()["state"] == "done")
    path = next((served.data_dir / "exchange").rglob(f"{job}*"))
    path.write_bytes(b" " * FILE_SIZE)

    with idle_readers(served, f"/api/jobs/{job}/file") as growth:
        assert growth < FILE_SIZE


@pytest.fixture(scope="module")
def long_run(served) -> str:
    """Return the id of a finished run whose stream has as many bytes as a large file."""
    agent_id = f"long-{uuid4().hex[:12]}"
    with served.client(served.keys["publisher"]) as client:
        client.post(AGENTS, json=agent(agent_id)).raise_for_status()
        run = client.post(f"/api/agents/{agent_id}/generate", json={"messages": "Hello"}).raise_for_status().json()
    run_inside(served, f"add_long_events('{run['runId']}', {FILE_SIZE})")
    return run["runId"]


def test_streams_that_nobody_reads_use_little_memory(served, long_run):
    path = f"/api/runs/{long_run}/stream"

    with idle_readers(served, path) as growth:
        whole = exchange(served, head(served, "GET", path, "Connection: close"))

    assert growth < FILE_SIZE
    assert len(whole) > FILE_SIZE
    assert whole.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


def memory_of_web(copy) -> int:
    return sum(process.memory_info().rss for process in psutil.Process(copy.process.pid).children(recursive=True))
