"""A model that answers at once: a local server with the Chat Completions API, in a process of its own.

The question is the number of pieces of text of the answer. The first piece is the time at which it was sent, in
seconds since 1970.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.served import free_port, wait_until

PROJECT = Path(__file__).resolve().parent.parent
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECES_PER_WRITE = 50


@contextmanager
def model_server() -> Iterator[dict[str, str]]:
    """Run the server. Yield the environment variables that make it the provider `mistral`."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.model_server", str(port)], cwd=PROJECT)
    try:
        wait_until(lambda: is_open(port), 10, "the model server")
        yield {
            "MISTRAL_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "MISTRAL_API_KEY": "benchmark",
            "OUTBOUND_NETWORKS": "127.0.0.0/8",
        }
    finally:
        process.terminate()
        process.wait(10)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def answer_requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"content-length: (\d+)", head.lower())[1])  # type: ignore[index]
            question = json.loads(await reader.readexactly(length))["messages"][-1]["content"]
            await answer(writer, int(question))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def answer(writer: asyncio.StreamWriter, pieces: int) -> None:
    writer.write(HEAD + block({"role": "assistant", "content": f"{time.time():.6f} "}))
    await writer.drain()
    word = block({"content": "word "})
    for start in range(1, pieces, PIECES_PER_WRITE):
        writer.write(word * min(PIECES_PER_WRITE, pieces - start))
        await writer.drain()
    usage = {"prompt_tokens": 10, "completion_tokens": pieces, "total_tokens": pieces + 10}
    writer.write(
        block({}, finish_reason="stop") + block(None, usage=usage) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    )
    await writer.drain()


def block(delta: dict[str, str] | None, finish_reason: str | None = None, **members: Any) -> bytes:
    """Return one server-sent event as a chunk of the response."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    head = {"id": "answer", "object": "chat.completion.chunk", "created": 1, "model": "instant", "choices": choices}
    return chunk(b"data: %s\n\n" % json.dumps({**head, **members}).encode())


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def main() -> None:
    server = await asyncio.start_server(answer_requests, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
