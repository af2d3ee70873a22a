"""Measure, and write tables and plots into docs/benchmarks.

    make benchmark                    the six operations on PostgreSQL with 1,000 agents, at 1, 8 and 32 clients
    make benchmark ARGS="--sqlite"    the same on the embedded default
    make benchmark ARGS="--growth"    the same with 100,000 agents and 1,000,000 versions, and the prune sweep on them
    make benchmark ARGS="--exchange"  an import and an export of 10,000 agents
    make benchmark ARGS="--footprint" start, memory at rest and a page of the editor of the embedded stack
    make benchmark ARGS="--profile"   where a web process spends its CPU in each operation, by package
    make benchmark ARGS="--all"       everything, in about ten minutes

It starts what it needs on the loopback, and measures for a bounded time on a copy of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import footprint, load, telling
from benchmarks.copies import database, manage, prepared, run, served

MOST_SECONDS = 20
STEPS = ("sqlite", "growth", "profile", "exchange", "footprint")
EVERYBODY = (1, 8, 32)
SMALL, GROWN = (1000, 2), (100_000, 10)


def main() -> None:
    options = arguments()
    telling_here = partial(telling.keep_cells, folder=options.out)
    how = f"{options.runs} runs of {options.seconds:g} s each, in turn; the one that took the least CPU is shown."
    steps = [name for name in STEPS if getattr(options, name) or options.all]
    print(load.HEAD, flush=True)
    if options.all or not steps:
        cells = cells_of(options, False, SMALL, options.clients)
        telling_here("postgresql", "PostgreSQL, 1,000 agents", cells, how)
    if "sqlite" in steps:
        telling_here("sqlite", "SQLite, 1,000 agents", cells_of(options, True, SMALL, options.clients), how)
    if "growth" in steps:
        cells, sweep = grown(options)
        telling_here("postgresql-grown", "PostgreSQL, 100,000 agents and 1,000,000 versions", cells, how)
        telling.keep("prune", sweep, options.out)
    if "profile" in steps:
        telling.keep("profile", profile(), options.out)
    if "exchange" in steps:
        telling.keep("exchange", exchange(options.agents), options.out)
    if "footprint" in steps:
        telling.keep("footprint", footprint.measured(), options.out)
    telling.page(options.out)
    print(f"\nTables and plots are in {options.out}.")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in (*STEPS, "all"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.6)
    # More would bring the agents of the spread edits to the cap too, which then prune.
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--clients", type=int, nargs="+", default=EVERYBODY)
    parser.add_argument("--agents", type=int, default=10_000, help="in the file of --exchange")
    parser.add_argument("--out", type=Path, default=telling.FOLDER)
    options = parser.parse_args()
    options.seconds = min(options.seconds, MOST_SECONDS)
    return options


def cells_of(
    options: argparse.Namespace, sqlite: bool, size: tuple[int, int], clients: Sequence[int]
) -> list[load.Cell]:
    with prepared(sqlite, *size) as environment, served(environment) as copy:
        return load.measured(copy, size[0], clients, options.runs, options.seconds)


def grown(options: argparse.Namespace) -> tuple[list[load.Cell], dict[str, float]]:
    """The operations among a million versions, then the sweep that prunes half of them."""
    with prepared(False, *GROWN) as environment:
        with served(environment) as copy:
            cells = load.measured(copy, GROWN[0], [telling.CLIENTS], options.runs, options.seconds)
        sweep = run(environment, sys.executable, "-m", "benchmarks.prune", "--filled", "--json")
    return cells, last_line(sweep)


def profile() -> dict[str, Any]:
    with prepared(False, *SMALL) as environment:
        key = manage(environment, "create_api_key", "bench")
        command = [sys.executable, "-m", "benchmarks.profiles", key, "--agents", str(SMALL[0])]
        return last_line(run({**environment, "API_THROTTLE": "off"}, *command))


def exchange(agents: int) -> dict[str, float]:
    with database(False, Path()) as environment:
        command = [sys.executable, "-m", "benchmarks.exchange", "--agents", str(agents), "--no-dry-run", "--json"]
        figures = last_line(run(environment, *command))
    told: dict[str, float] = {}
    for step, figure in figures.items():
        told |= {f"{step}, s": figure["seconds"], f"{step}, peak MB": figure["peak"] / 2**20}
    return told


def last_line(printed: str) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return figures


if __name__ == "__main__":
    main()
