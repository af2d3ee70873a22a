"""Run measurements and write tables and charts into docs/benchmarks.

    make benchmark                    six API operations on PostgreSQL with 1,000 agents, with 1, 8 and 32 clients
    make benchmark ARGS="--sqlite"    the same on the embedded SQLite
    make benchmark ARGS="--growth"    the same with 100,000 agents and 1,000,000 versions, then the retention job
    make benchmark ARGS="--agent-runs"  runs of an agent whose model answers at once, on both databases
    make benchmark ARGS="--exchange"  import and export of 10,000 agents
    make benchmark ARGS="--durable"   durable runs compared with others, on both databases
    make benchmark ARGS="--suspended" 10,000 runs that wait for people, on both databases
    make benchmark ARGS="--takeover"  time until the runs of a killed worker continue, and the memory of a worker
    make benchmark ARGS="--tools"     MCP servers, the response cache, background tasks and knowledge bases
    make benchmark ARGS="--memory"    recall, windows and signals of conversations, on both databases
    make benchmark ARGS="--evaluations"  experiments, comparisons and their pages, and the cost of tracing
    make benchmark ARGS="--footprint" start time, idle memory and the editor page of the embedded stack
    make benchmark ARGS="--profile"   CPU profile of a web process in each operation, by package
    make benchmark ARGS="--all"       everything, in about half an hour

Starts temporary servers on the loopback interface.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import agent_library, footprint, load, report, runs
from benchmarks.deployment import empty_database, manage, prepared_environment, run, serving

MAX_SECONDS = 20
MODULES = ("durable", "suspended", "takeover", "tools", "memory", "evaluations")  # in processes of their own
PARTS = ("sqlite", "growth", "agent_runs", "profile", "exchange", "footprint", *MODULES)
CLIENTS = (1, 8, 32)
# Agents, and versions of each.
SMALL, LARGE = (1000, 2), (100_000, 10)


def main() -> None:
    options = parse_arguments()
    parts = [name for name in PARTS if getattr(options, name) or options.all]
    report.write_environment(options.runs, options.seconds, options.out)
    print(load.TABLE_HEADER, flush=True)
    if options.all or not parts:
        report.write_measurements("postgresql", measure_load(options, False, options.clients), options.out)
    if "sqlite" in parts:
        report.write_measurements("sqlite", measure_load(options, True, options.clients), options.out)
    if "growth" in parts:
        write_growth(options)
    if "agent_runs" in parts:
        figures = {title: measure_agent_runs(options, sqlite) for title, sqlite in runs.DATABASES.items()}
        report.write_json("agent-runs", figures, options.out)
        report.write_json("agent-library", {"cpu": agent_library.measure()}, options.out)
    if "profile" in parts:
        report.write_json("profile", measure_profile(), options.out)
    if "exchange" in parts:
        report.write_json("exchange", measure_exchange(options.agents), options.out)
    if "footprint" in parts:
        report.write_json("footprint", footprint.measure_footprint(), options.out)
    write_modules([name for name in MODULES if name in parts], options.out)
    report.render(options.out)
    print(f"\nTables and charts are in {options.out}.")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in (*PARTS, "all"):
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.6, help="duration of each run")
    # With more runs the agents of the spread edits reach the version limit too.
    parser.add_argument("--runs", type=int, default=8, help="runs of each operation")
    parser.add_argument("--clients", type=int, nargs="+", default=CLIENTS, help="numbers of concurrent clients")
    parser.add_argument("--agents", type=int, default=10_000, help="agents in the file of --exchange")
    parser.add_argument("--out", type=Path, default=report.FOLDER, help="folder of the results")
    options = parser.parse_args()
    options.seconds = min(options.seconds, MAX_SECONDS)
    return options


def measure_load(options: argparse.Namespace, sqlite: bool, clients: Sequence[int]) -> list[load.Measurement]:
    with prepared_environment(sqlite, *SMALL) as environment, serving(environment) as deployment:
        return load.measure_operations(deployment, SMALL[0], clients, options.runs, options.seconds)


def measure_growth(options: argparse.Namespace) -> tuple[list[load.Measurement], dict[str, float]]:
    """Measure the operations with a million versions, then the retention job that deletes half of them."""
    with prepared_environment(False, *LARGE) as environment:
        with serving(environment) as deployment:
            measurements = load.measure_operations(
                deployment, LARGE[0], [report.CLIENTS], options.runs, options.seconds
            )
        output = run(environment, sys.executable, "-m", "benchmarks.prune", "--filled", "--json")
    return measurements, parse_last_line(output)


def measure_agent_runs(options: argparse.Namespace, sqlite: bool) -> dict[str, Any]:
    seconds = max(options.seconds, runs.MIN_SECONDS)
    with runs.prepared_deployment(sqlite) as deployment:
        measurements, pieces = runs.measure_runs(deployment, options.clients, options.runs, seconds)
    load_of_machine = os.getloadavg()[0]
    return {"runs": [*map(asdict, measurements)], "pieces": [*map(asdict, pieces)], "load": load_of_machine}


def measure_profile() -> dict[str, Any]:
    with prepared_environment(False, *SMALL) as environment:
        key = manage(environment, "create_api_key", "bench")
        command = [sys.executable, "-m", "benchmarks.profiles", key, "--agents", str(SMALL[0])]
        return parse_last_line(run({**environment, "API_THROTTLE": "off"}, *command))


def measure_exchange(agents: int) -> dict[str, float]:
    """Return the duration and the peak memory of each step."""
    with empty_database(False, Path()) as environment:
        command = [sys.executable, "-m", "benchmarks.exchange", "--agents", str(agents), "--no-dry-run", "--json"]
        steps = parse_last_line(run(environment, *command))
    figures: dict[str, float] = {}
    for step, measured in steps.items():
        figures |= {f"{step}, s": measured["seconds"], f"{step}, peak MB": measured["peak"] / 2**20}
    return figures


def write_growth(options: argparse.Namespace) -> None:
    measurements, prune = measure_growth(options)
    report.write_measurements("postgresql-grown", measurements, options.out)
    report.write_json("prune", prune, options.out)


def write_modules(names: Sequence[str], folder: Path) -> None:
    """Measure with these modules, on both databases unless a module starts its own."""
    for name in names:
        report.write_json(name, measure_with(name, {**os.environ, "DATABASE_URL": ""}), folder)
        if name != "takeover":
            with empty_database(False, Path()) as environment:
                report.write_json(f"{name}-postgresql", measure_with(name, environment), folder)


def measure_with(name: str, environment: dict[str, str]) -> dict[str, Any]:
    """Run a module of this folder and return its figures."""
    return parse_last_line(run(environment, sys.executable, "-m", f"benchmarks.{name}", "--json"))


def parse_last_line(output: str) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    return figures


if __name__ == "__main__":
    main()
