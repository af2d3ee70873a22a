"""The cost of tools from outside: MCP servers, cached answers, knowledge bases and background tasks.

    python -m benchmarks.tools [--chunks 10000] [--searched 100000] [--tasks 50] [--json]

Everything happens in this process, on a temporary SQLite or on DATABASE_URL. The model answers at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks import tool_server
from benchmarks.knowledge import measure_indexing, measure_search, run_due_jobs
from benchmarks.timing import Figures, least_ms, milliseconds
from tests.served import free_port, wait_until

CALLS = 100  # of a tool in an open connection


def prepare(stack: ExitStack) -> None:
    """Set up Django with an empty database, a cache, and a program that is an MCP server."""
    from agentcms.server.valkey import running_valkey

    folder = Path(tempfile.mkdtemp(prefix="agentcms-tools-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    commands = folder / "commands.json"
    argv = [sys.executable, tool_server.__file__, "stdio"]
    commands.write_text(json.dumps({"bench": {"argv": argv, "sandbox": "none"}, "boxed": {"argv": argv}}))
    os.environ |= {"DATA_DIR": str(folder), "RUN_ENGINE": "process", "LOG_LEVEL": "error", "API_THROTTLE": "off"}
    os.environ |= {"MCP_COMMANDS": str(commands), "OUTBOUND_NETWORKS": "127.0.0.0/8"}
    os.environ |= {"RUNS_PER_USER": "1000", "RUNS_PER_AGENT": "1000", "DJANGO_SETTINGS_MODULE": "agentcms.settings"}
    os.environ["REDIS_URL"] = stack.enter_context(running_valkey(folder / "valkey", os.environ))
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", interactive=False, verbosity=0)


# --- MCP servers


@contextmanager
def running_server() -> Iterator[str]:
    """Start the MCP server over HTTP. Yield its URL."""
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    port = free_port()

    def answers() -> bool:
        try:
            urlopen(f"http://127.0.0.1:{port}/", timeout=5)
        except HTTPError:
            return True
        except URLError:
            return False
        return True

    command = [sys.executable, "-m", "benchmarks.tool_server", "http", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(answers, 60, "the MCP server")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def measure_mcp() -> Figures:
    """Return the times of listings and calls by transport, and of building an agent with all tools."""
    from tools_app.mcp.cached_servers import server_from_row
    from tools_app.mcp.calls import list_tools
    from tools_app.models import McpServer
    from tools_app.programs.sandbox import is_sandbox_available

    figures: Figures = {}
    with running_server() as url:
        rows = {"HTTP": McpServer(key="bench", title="Bench", url=url)}
        programs = {"program": "bench"} | ({"program in the sandbox": "boxed"} if is_sandbox_available() else {})
        for title, key in programs.items():
            rows[title] = McpServer(key=key, title=title, transport="stdio", command_key=key, connect_timeout=60)
        for title, row in rows.items():
            server = server_from_row(row)
            goal = "goal 60 to 150" if title == "HTTP" else "goal 500 to 700"
            listed = least_ms(lambda server=server: asyncio.run(list_tools(server)), 5)  # type: ignore[misc]
            figures[f"connect and list {tool_server.TOOLS} tools, {title} ({goal}), ms"] = listed
            figures[f"call in an open connection, {title} (goal 13), ms"] = asyncio.run(call_ms(server))
        listing = asyncio.run(list_tools(server_from_row(rows["HTTP"])))
        figures |= measure_building(rows["HTTP"], listing)
    return figures


async def call_ms(server: Any) -> float:
    """Return the time of a call in an open connection."""
    from tools_app.mcp.calls import call_mcp_tool
    from tools_app.mcp.headers import CallerNames
    from tools_app.mcp.sessions import session_pool

    durations = []
    for number in range(CALLS):
        started = time.perf_counter()
        await call_mcp_tool(server, "add_7", {"a": number, "b": 1}, CallerNames())
        durations.append(time.perf_counter() - started)
    await session_pool().close_all()
    return min(durations) * 1000


def measure_building(row: Any, listing: Any) -> Figures:
    """Return the times of storing a list of tools, and of building an agent that has all of them."""
    from agents_app.models import Agent
    from runs_app.building.agent import build_agent
    from runs_app.resolution import stored_agents
    from tools_app.mcp.listing import store_listing

    row.save()
    stored = milliseconds(lambda: store_listing(row.pk, listing))
    agent = Agent(id="mcp", name="MCP", model={"provider": "demo", "name": "echo"}, mcp_clients={"bench": {}})
    agent.save()
    resolved = stored_agents.get("mcp")
    return {
        f"store the list of {tool_server.TOOLS} tools, ms": stored,
        f"build an agent with {tool_server.TOOLS} tools, which connects to nothing, ms": least_ms(
            lambda: build_agent(resolved.configuration)
        ),
    }


# --- Cached answers


def measure_cache() -> Figures:
    """Return the times of a cached answer: alone, and as a whole run with its rows and events."""
    from agents_app.models import Agent
    from runs_app.resolution import stored_agents
    from tests.runs_app.conftest import answer

    processors = [{"key": "response-cache"}]
    agent = Agent(id="cached", name="Cached", model={"provider": "demo", "name": "echo"}, input_processors=processors)
    agent.save()
    built = stored_agents.get("cached").build()

    async def ask_again() -> float:
        durations = []
        for _ in range(CALLS):
            started = time.perf_counter()
            result = await answer(built, "Hello", user_id=1, owner_id="support")  # type: ignore[no-untyped-call]
            durations.append(time.perf_counter() - started)
        assert result.all_messages()[-1].metadata["cache"] == "hit"
        return min(durations) * 1000

    cached = asyncio.run(ask_again())
    return {
        "cached answer of an agent (goal 20), ms": cached,
        "run with a cached answer, from its start to its end, ms": least_ms(lambda: finish_run("cached"), 20),
    }


def finish_run(agent_id: str) -> Any:
    """Start a run that is not durable, and wait for its end."""
    from django.contrib.auth import get_user_model

    from runs_app.engine.start.run import start_run
    from runs_app.events.streams import wait_until_over
    from runs_app.resolution import stored_agents

    user, _ = get_user_model().objects.get_or_create(username="bench", is_superuser=True)
    run = start_run(stored_agents.get(agent_id), user=user, messages="Hello", options={"durable": False})
    finished = wait_until_over(run.pk)
    assert finished.status == "succeeded", finished.error
    return finished


# --- Background tasks


def measure_tasks(count: int) -> Figures:
    """Return how long the tasks of one run take that work for no time, until all results are delivered."""
    from agents_app.models import Agent
    from runs_app.background.maintenance import maintain_tasks
    from runs_app.models import BackgroundTask, BackgroundTaskDelivery

    register_task_agent(count)
    calls = {"tools": "all"}
    model = {"provider": "tasks", "name": "plan"}
    Agent(id="tasks", name="Tasks", model=model, tools=["bench-add"], background_tasks=calls).save()
    started, cpu = time.perf_counter(), time.process_time()
    run = finish_run("tasks")
    dispatched = time.perf_counter() - started
    while BackgroundTaskDelivery.objects.filter(task__run=run).count() < count:
        run_due_jobs()
        maintain_tasks()
        time.sleep(0.01)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert BackgroundTask.objects.filter(run=run, status="completed").count() == count
    return {
        f"run that starts {count} background tasks, s": dispatched,
        f"{count} background tasks with their results, 5 at the same time, s": seconds,
        "CPU of a background task, ms": cpu / count * 1000,
    }


def register_task_agent(count: int) -> None:
    """Register a tool, and a model that calls it so many times at once."""
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    import runs_app.tasks  # noqa: F401  registers the handlers of jobs
    from agents_app.registry import Entry, Kind, registry, tool
    from runs_app.providers import cached_providers

    @tool("bench-add")
    async def add(number: int) -> int:
        return number + 1

    async def answer(messages: Any, info: Any) -> Any:
        if any(isinstance(message, ModelResponse) for message in messages):
            yield "Done."
            return
        yield {n: DeltaToolCall("bench-add", json.dumps({"number": n}), tool_call_id=f"c{n}") for n in range(count)}

    model = FunctionModel(stream_function=answer, model_name="plan")
    registry.add(Entry(Kind.MODEL_PROVIDER, "tasks", "Tasks", target=lambda name, choice: model))
    cached_providers.invalidate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--searched", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="print the figures as one line of JSON")
    options = parser.parse_args()
    with ExitStack() as stack:
        prepare(stack)
        figures = measure_mcp() | measure_cache() | measure_tasks(options.tasks)
        figures |= measure_indexing(options.chunks) | measure_search(options.searched)
    figures["load of the machine by all programs"] = os.getloadavg()[0]
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name}: {value:,.2f}")


if __name__ == "__main__":
    main()
