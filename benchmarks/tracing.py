"""CPU time of a run of the engine with tracing off, on, on with contents, and on with a collector that is gone.

    python -m benchmarks.tracing [--runs 60] [--rounds 7]

Needs no server. All runs are executed in this process, on a temporary SQLite or on DATABASE_URL. The collector is a
process of its own, whose CPU time is not counted. That of the export is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

Figures = dict[str, float]

RUNS = 60
ROUNDS = 7
WARM_UP_RUNS = 10
PROMPT = 'Use calculator with {"expression": "6*7"}'  # two requests to the model and one call of a tool
COLLECTOR = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Discarding(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments): ...

server = ThreadingHTTPServer(("127.0.0.1", 0), Discarding)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def running_collector() -> Iterator[str]:
    """Run a collector that discards all spans, and yield its address."""
    with subprocess.Popen([sys.executable, "-c", COLLECTOR], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def create_agent() -> tuple[Any, Any]:
    """Return the user and the agent of the runs."""
    from django.contrib.auth import get_user_model

    from agents_app.models import Agent

    user, _ = get_user_model().objects.get_or_create(username="traced", is_superuser=True, is_staff=True)
    agent = Agent.objects.filter(pk="traced").first()
    if agent is None:
        model = {"provider": "demo", "name": "echo", "delay": 0}
        agent = Agent(id="traced", name="Traced", instructions="Be exact.", model=model, tools=["calculator"])
        agent.save()
    return user, agent


def run_agent(user: Any, agent: Any) -> None:
    """Start a run as the API does, and wait for its end and that of its task, without CPU time of its own."""
    from runs_app.engine.engine import get_engine
    from runs_app.engine.run_ends import run_ended
    from runs_app.engine.start.run import start_run
    from runs_app.resolution import stored_agents

    ended = threading.Event()

    def notice(status: str, **kwargs: Any) -> None:
        assert status == "succeeded", status
        ended.set()

    run_ended.connect(notice)
    start_run(stored_agents.get(agent.pk, user=user), user=user, messages=PROMPT)
    assert ended.wait(60), "The run has not ended."
    run_ended.disconnect(notice)
    while get_engine().run_tasks:  # its spans end after its row
        time.sleep(0.001)


def cpu_of_runs(count: int, user: Any, agent: Any) -> float:
    """Return the CPU milliseconds of this process for a run, with the export of its spans."""
    from agentcms.tracing import spans

    started = time.process_time()
    for _ in range(count):
        run_agent(user, agent)
    if spans.is_tracing():
        from agentcms.tracing import tracer_provider

        tracer_provider.flush()
    return (time.process_time() - started) * 1000 / count


@contextmanager
def tracing_to(endpoint: str, *, content: bool = False) -> Iterator[None]:
    """Trace the runs of the block, unless the endpoint is blank."""
    from django.conf import settings

    from agentcms.tracing import spans

    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    settings.TRACES_ENDPOINT, settings.TRACE_CONTENT = endpoint, content
    yield
    spans.shut_down()


def measure(runs: int = RUNS, rounds: int = ROUNDS) -> Figures:
    """Return the figures of tracing. Django must be set up and the database migrated.

    The ways take turns, and what one adds is the median of its differences to the way without tracing in the same
    round: the pace of a machine changes from round to round by more than tracing costs.
    """
    user, agent = create_agent()
    with running_collector() as url:
        ways = {"off": ("", False), "on": (url, False), "content": (url, True), "gone": ("http://127.0.0.1:9", False)}
        samples: dict[str, list[float]] = {name: [] for name in ways}
        stop = 0.0
        for _ in range(rounds):
            for name, (endpoint, content) in ways.items():
                with tracing_to(endpoint, content=content):
                    cpu_of_runs(WARM_UP_RUNS, user, agent)
                    samples[name].append(cpu_of_runs(runs, user, agent))
                    run_agent(user, agent)  # its spans wait when the process stops
                    ended = time.monotonic()
                stop = max(stop, time.monotonic() - ended) if name == "gone" else stop
    return {
        "CPU of a run of the engine without tracing, ms": median(samples["off"]),
        "CPU that tracing adds to a run (goal 3), ms": added_median(samples, "on"),
        "CPU that tracing with contents adds to a run, ms": added_median(samples, "content"),
        "CPU that tracing with a collector that is gone adds to a run (goal 5), ms": added_median(samples, "gone"),
        "longest stop with a collector that is gone (goal 1), s": stop,
    }


def added_median(samples: dict[str, list[float]], name: str) -> float:
    """Return the median of what a way adds to the one without tracing, in milliseconds."""
    return median(traced - untraced for untraced, traced in zip(samples["off"], samples[name], strict=True))


def main() -> None:
    from benchmarks.evaluations import prepare

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of a round")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    with ExitStack() as stack:
        prepare(stack)
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", interactive=False, verbosity=0)
        for name, figure in measure(options.runs, options.rounds).items():
            print(f"{name}: {figure:.2f}")
    print(f"load of the machine by all programs: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
