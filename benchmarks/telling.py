"""The figures as tables and plots in docs/benchmarks, and one page that holds them against what was asked for."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchmarks import plots
from benchmarks.load import HEAD, Cell, row

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
UNITS = (("cpu", "CPU per request, ms"), ("p95", "p95, ms"), ("per_second", "Requests per second"))

# CPU of a request in milliseconds, and requests per second, on PostgreSQL at 8 clients.
WANTED = {
    "read an agent": (0.8, 1700),
    "list 100": (3.0, 400),
    "edit, spread over 200": (4.0, 360),
    "edit one at the cap": (5.0, 240),
    "list 20 versions": (1.5, 900),
    "compare": (1.0, 1300),
}
CLIENTS = 8


def keep(part: str, figures: Any, folder: Path = FOLDER) -> None:
    """The figures of a part as they are, for the page and for whoever compares."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}.json").write_text(json.dumps(figures, indent=1) + "\n")


def keep_cells(part: str, title: str, cells: Iterable[Cell], how: str, folder: Path = FOLDER) -> None:
    """A table and its plots."""
    cells = list(cells)
    figures = [asdict(each) for each in cells]
    keep(part, figures, folder)
    lines = [f"# {title}", "", how, "", HEAD, *map(row, cells), ""]
    for unit, words in UNITS:
        plot = f"{part}-{unit.replace('_', '-')}.svg"
        (folder / plot).write_text(plots.bars(words, figures, unit))
        lines += [f"![{words}]({plot})", ""]
    (folder / f"{part}.md").write_text("\n".join(lines))


def page(folder: Path = FOLDER) -> None:
    """README.md: every part that was measured, each against what was asked for."""
    known = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    parts = [
        facts(),
        load(known),
        costs(known),
        growth(known),
        sqlite(known),
        *(listed(known, name) for name in LISTED),
    ]
    (folder / "README.md").write_text("\n".join(line for part in parts for line in part))


def facts() -> list[str]:
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "")
    machine = f"{psutil.cpu_count()} cores ({cpu.partition(': ')[2]}), {psutil.virtual_memory().total >> 30} GB"
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    return [
        "# Benchmarks",
        "",
        f"Measured on {when} with Python {platform.python_version()} on {machine}, which also ran the clients.",
        "CPU is that of the web server, the database and the cache together, per answered request. Repeat with",
        '`make benchmark ARGS="--all"`, which takes about ten minutes. "Pace" is what a fixed piece of Python takes',
        "on the idle machine around a measurement: compare figures only where it is alike. Of several runs the one",
        "with the least CPU is shown, because whoever else uses the hardware only adds; beside it stands the one in",
        "the middle.",
        "",
    ]


def load(known: dict[str, Any]) -> list[str]:
    if "postgresql" not in known:
        return []
    lines = [
        f"## PostgreSQL, 1,000 agents, {CLIENTS} clients",
        "",
        "| operation | CPU ms | at most | in the middle | requests/s | p95 ms | pace ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for cell in at_clients(known["postgresql"]):
        most, _ = WANTED[cell["operation"]]
        figures = f"{cell['middle_cpu']:.2f} | {cell['per_second']:.0f} | {cell['p95']:.1f} | {cell['pace']:.0f}"
        lines.append(f"| {cell['operation']} | {cell['cpu']:.2f} | {most} | {figures} |")
    return [*lines, "", "[All figures](postgresql.md)", "", "![CPU per request](postgresql-cpu.svg)", ""]


def costs(known: dict[str, Any]) -> list[str]:
    """Where the CPU of a web process goes, and the functions that take most of it."""
    if "profile" not in known:
        return []
    lines = [
        "## What still costs",
        "",
        "The CPU of a web process alone, without its server and the database, sampled while it answers one caller.",
        "",
        "| operation | CPU ms | by package, % | most of it in |",
        "| --- | ---: | --- | --- |",
    ]
    for operation, figures in known["profile"].items():
        packages = ", ".join(f"{name} {share:.0f}" for name, share in figures["packages"].items())
        functions = ", ".join(f"`{name.partition(',')[0]}` {share:.0f}" for name, share in top(figures["functions"]))
        lines.append(f"| {operation} | {figures['cpu']:.2f} | {packages} | {functions} |")
    return [*lines, ""]


def top(shares: dict[str, float]) -> list[tuple[str, float]]:
    return list(shares.items())[:4]


def growth(known: dict[str, Any]) -> list[str]:
    if not {"postgresql", "postgresql-grown"} <= known.keys():
        return []
    small = {cell["operation"]: cell for cell in at_clients(known["postgresql"])}
    lines = [
        "## Growth: 100,000 agents and 1,000,000 versions",
        "",
        "| operation | CPU ms at 1,000 agents | at 100,000 | times, at the same pace | at most |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for cell in at_clients(known["postgresql-grown"]):
        before = small[cell["operation"]]
        times = cell["cpu"] / cell["pace"] / (before["cpu"] / before["pace"])
        lines.append(f"| {cell['operation']} | {before['cpu']:.2f} | {cell['cpu']:.2f} | {times:.2f} | 1.5 |")
    return [*lines, "", "[All figures](postgresql-grown.md)", ""]


def sqlite(known: dict[str, Any]) -> list[str]:
    if "sqlite" not in known:
        return []
    edit = next(cell for cell in at_clients(known["sqlite"]) if cell["operation"].startswith("edit, spread"))
    return [
        "## SQLite, the embedded default",
        "",
        f"The p95 of an edit with {CLIENTS} writers is {edit['p95']:.0f} ms (at most 80); {edit['errors']} failed.",
        "",
        "[All figures](sqlite.md)",
        "",
    ]


LISTED = {
    "footprint": "The embedded stack with 1,000 agents (start at most 8 s, memory 350 MB, page of the editor 60 ms)",
    "prune": "The prune sweep at 1,000,000 versions, while agents are activated",
    "exchange": "Import and export of 10,000 agents on PostgreSQL",
}


def listed(known: dict[str, Any], name: str) -> list[str]:
    if name not in known:
        return []
    rows = [f"| {what} | {value:,.1f} |" for what, value in known[name].items()]
    return [f"## {LISTED[name]}", "", "| figure | value |", "| --- | ---: |", *rows, ""]


def at_clients(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [cell for cell in cells if cell["clients"] == CLIENTS]
