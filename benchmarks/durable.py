"""The cost of durable runs: CPU and time per step compared with runs that are not durable, and the first event.

    python -m benchmarks.durable [--runs 32] [--steps 20] [--json]

Executes runs of a scripted model in this process, on a temporary SQLite or on DATABASE_URL.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from typing import Any

# Milliseconds of CPU that a step of a durable run needs above another one; a prototype was measured before.
GOAL_ALONE = "goal 3, prototype 2.5 to 3.4"
GOAL_TOGETHER = "goal 1.5, prototype 0.9"
GOALS_OF_WALL = {1: " (goal 10, prototype 6 to 13)"}  # milliseconds, by the number of runs at the same time
GOAL_FIRST_EVENT = "goal 50, prototype 13 after the row"  # milliseconds


def prepare() -> str:
    """Set up Django with an empty database. Return the folder of its data."""
    folder = tempfile.mkdtemp(prefix="agentcms-durable-")
    os.environ |= {"DATA_DIR": folder, "RUN_ENGINE": "process", "RUN_MAX_STEPS": "100", "LOG_LEVEL": "error"}
    os.environ |= {"RUNS_PER_USER": "1000", "RUNS_PER_AGENT": "1000", "DJANGO_SETTINGS_MODULE": "agentcms.settings"}
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    return folder


def create_agent(steps: int) -> None:
    """Create an agent whose model calls a tool in each step but the last."""
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    from agents_app.models import Agent
    from agents_app.registry import Entry, Kind, registry, tool

    async def answer(messages: Any, info: Any) -> Any:
        number = sum(isinstance(message, ModelResponse) for message in messages)
        if number < steps // 2:
            yield {0: DeltaToolCall("add", '{"number": 1}', tool_call_id=f"c{number}")}
        else:
            yield "Done."

    @tool("add")
    async def add(number: int) -> int:
        return number + 1

    model = FunctionModel(stream_function=answer, model_name="scripted")
    registry.add(Entry(Kind.MODEL_PROVIDER, "scripted", "Scripted", target=lambda name, choice: model))
    choice = {"provider": "scripted", "name": "scripted"}
    Agent(id="bench", name="Bench", instructions="", model=choice, tools=["add"]).save()


def measure(runs: int, *, is_durable: bool) -> dict[str, float]:
    """Execute runs at the same time. Return seconds of wall clock and CPU, and milliseconds to the first event."""
    from runs_app.engine.start.run import start_run
    from runs_app.events.streams import wait_until_over
    from runs_app.resolution import stored_agents

    agent = stored_agents.get("bench")
    started_at, cpu = time.perf_counter(), time.process_time()
    rows = [start_run(agent, user=None, messages="Go", options={"durable": is_durable}) for _ in range(runs)]
    finished = [wait_until_over(row.pk) for row in rows]
    wall, cpu = time.perf_counter() - started_at, time.process_time() - cpu
    assert all(run.status == "succeeded" for run in finished), [run.error for run in finished]
    waits = [(run.events.order_by("number")[0].created_at - run.created_at).total_seconds() for run in finished]
    return {"wall": wall, "cpu": cpu, "first": statistics.median(waits) * 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print the figures as one line of JSON")
    options = parser.parse_args()
    folder = prepare()
    try:
        create_agent(options.steps)
        measure(2, is_durable=True)  # loads and compiles everything
        figures = compare_alone_and_together(options.runs, options.steps + 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name}: {value:.2f}")


def compare_alone_and_together(runs: int, steps: int) -> dict[str, float]:
    """Return the figures of one run, then those of several at the same time."""
    figures: dict[str, float] = {}
    for count in (1, runs):
        usual, durable = best(count, is_durable=False), best(count, is_durable=True)
        label = "alone" if count == 1 else f"{count} at the same time"
        cpu = [1000 * measured["cpu"] / count / steps for measured in (usual, durable)]
        goal = GOAL_ALONE if count == 1 else GOAL_TOGETHER
        first_event = durable["first"] - usual["first"]
        figures |= {
            f"CPU of a step, {label}, not durable, ms": cpu[0],
            f"CPU of a step, {label}, above that ({goal}), ms": cpu[1] - cpu[0],
            f"wall clock of a step, {label}{GOALS_OF_WALL.get(count, '')}, ms": 1000 * durable["wall"] / count / steps,
            f"first event, {label}, above not durable ({GOAL_FIRST_EVENT}), ms": first_event,
        }
    figures[f"runs of {steps} steps per second (goal 9, prototype 9.2)"] = runs / durable["wall"]
    figures["load of the machine by all programs"] = os.getloadavg()[0]
    return figures


def best(runs: int, *, is_durable: bool) -> dict[str, float]:
    """Return the measurement with the least CPU of three."""
    return min((measure(runs, is_durable=is_durable) for _ in range(3)), key=lambda figures: figures["cpu"])


if __name__ == "__main__":
    main()
