"""CPU time of a run with tracing off, on, and on with contents: `python -m benchmarks.tracing`.

Needs no server. The collector is a thread that discards what it gets; its CPU time is not counted.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RUNS = 200
ROUNDS = 5


class Discarding(BaseHTTPRequestHandler):
    """A collector that discards all spans."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None: ...


def start_collector() -> str:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Discarding)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


async def run_agents(count: int) -> float:
    """Return the CPU milliseconds of this thread for a run with one request to a model and one call of a tool."""
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from agentcms.tracing import spans
    from runs_app import tracing

    agent = Agent(TestModel(), tools=[word_count])
    started = time.thread_time()
    for _ in range(count):
        with spans.span("run", {"agentcms.run.id": "1"}, with_content=True):
            await agent.run("How many words are these?", capabilities=tracing.instrumentation())
    return (time.thread_time() - started) * 1000 / count


def word_count(text: str) -> int:
    return len(text.split())


def measure() -> list[float]:
    """Return the CPU milliseconds of a run with tracing off, on, and on with contents. Django must be set up."""
    from django.conf import settings

    url = start_collector()
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
    asyncio.run(run_agents(20))
    figures = []
    for endpoint, content in (("", False), (url, False), (url, True)):
        settings.TRACES_ENDPOINT, settings.TRACE_CONTENT = endpoint, content
        asyncio.run(run_agents(20))
        # The least: other programs can only add to it.
        figures.append(min(asyncio.run(run_agents(RUNS)) for _ in range(ROUNDS)))
    return figures


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
    import django

    django.setup()
    for name, figure in zip(("off", "on", "on, with contents"), measure(), strict=True):
        print(f"{name}: {figure:.2f} ms of CPU a run")


if __name__ == "__main__":
    main()
