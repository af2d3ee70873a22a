"""Tables, charts and the page README.md in docs/benchmarks, rendered from the stored figures.

.venv/bin/python -m benchmarks.report     renders everything again without measuring
"""

from __future__ import annotations

import json
import platform
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchmarks import load, plots
from benchmarks.report_titles import (
    CHARTS,
    FIGURE_TITLES,
    LOAD_TITLES,
    MAX_GROWTH,
    MAX_SQLITE_EDIT_P95,
    RUN_TARGETS,
    SOAK_FIGURES,
    SOAK_TITLE,
    TARGETS,
)

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"

CLIENTS = 8
TOP_FUNCTIONS = 4


Figures = dict[str, Any]


def write_json(part: str, figures: Any, folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}.json").write_text(json.dumps(figures, indent=1) + "\n")


def write_environment(runs: int, seconds: float, folder: Path = FOLDER) -> None:
    """Store the date, the machine, and how often each operation is measured for how long."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.partition(": ")[2] for line in lines if "model name" in line), "")
    environment = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": describe_interpreter(),
        "cores": psutil.cpu_count(),
        "cpu": cpu,
        "memory_gb": psutil.virtual_memory().total >> 30,
        "runs": runs,
        "seconds": seconds,
    }
    write_json("environment", environment, folder)


def describe_interpreter() -> str:
    """Return the version of this Python, and whether it was built with optimisations (see `scripts/environment`)."""
    is_optimised = "--enable-optimizations" in sysconfig.get_config_var("CONFIG_ARGS") or sys.base_prefix == "/usr"
    return f"{platform.python_version()} (built {'with' if is_optimised else 'without'} optimisations)"


def write_measurements(part: str, measurements: Iterable[load.Measurement], folder: Path = FOLDER) -> None:
    write_json(part, [asdict(measurement) for measurement in measurements], folder)


def render(folder: Path = FOLDER) -> None:
    """Write README.md, and a table and charts for each load measurement, from the JSON files of the folder."""
    parts = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    for part in LOAD_TITLES:
        if part in parts:
            render_load(part, parts, folder)
    if "soak" in parts:
        chart = plots.render_line_chart(SOAK_TITLE, parts["soak"]["samples"], SOAK_FIGURES)
        (folder / "soak.svg").write_text(chart)
    sections = [
        introduction(parts),
        postgresql_section(parts),
        profile_section(parts),
        growth_section(parts),
        sqlite_section(parts),
        agent_runs_section(parts),
        *(figures_section(parts, part) for part in FIGURE_TITLES),
        soak_section(parts),
    ]
    (folder / "README.md").write_text("\n".join(line for section in sections for line in section))


def render_load(part: str, parts: Figures, folder: Path) -> None:
    """Write the table and the charts of one load measurement."""
    figures = parts[part]
    rows = [load.table_row(load.Measurement(**measurement)) for measurement in figures]
    lines = [f"# {LOAD_TITLES[part]}", "", *method(parts), load.TABLE_HEADER, *rows, ""]
    for figure, title in CHARTS:
        chart = f"{part}-{figure.replace('_', '-')}.svg"
        (folder / chart).write_text(plots.render_bar_chart(title, figures, figure))
        lines += [f"![{title}]({chart})", ""]
    (folder / f"{part}.md").write_text("\n".join(lines))


def method(parts: Figures) -> list[str]:
    """Return a paragraph about the runs."""
    if "environment" not in parts:
        return []
    environment = parts["environment"]
    return [
        f"{environment['runs']} runs of {environment['seconds']:g} s per row, alternating with the other rows.",
        "Each row shows the run with the least CPU. *Median CPU* is the median of all runs.",
        "",
    ]


def introduction(parts: Figures) -> list[str]:
    if "environment" not in parts:
        return ["# Benchmarks", ""]
    environment = parts["environment"]
    cores, memory = f"{environment['cores']} cores ({environment['cpu']})", f"{environment['memory_gb']} GB of memory"
    return [
        "# Benchmarks",
        "",
        f"Measured on {environment['date']} with Python {environment['python']} on {cores} and {memory}. The clients",
        'ran on the same machine. `make benchmark ARGS="--all"` repeats everything in about half an hour.',
        "",
        "- **CPU** is the CPU time of the web server, the database and the cache together, per successful request.",
        "- **Target** is the worst value that we accept.",
        "- Each operation is measured several times. The tables show the run with the least CPU, because other users",
        "  of the hardware can only add to it. **Median CPU** is the median of all runs.",
        "- **Reference** is the CPU time of a fixed piece of Python, measured before and after on the idle machine.",
        "  Compare two measurements only if their references are similar.",
        "",
    ]


def postgresql_section(parts: Figures) -> list[str]:
    if "postgresql" not in parts:
        return []
    lines = [
        f"## PostgreSQL, 1,000 agents, {CLIENTS} clients",
        "",
        "| operation | CPU ms | target | median CPU ms | requests/s | target | p95 ms | reference ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for m in with_default_clients(parts["postgresql"]):
        cpu, per_second = TARGETS[m["operation"]]
        cpu_columns = f"{m['cpu']:.2f} | {cpu} | {m['median_cpu']:.2f}"
        other_columns = f"{m['per_second']:.0f} | {per_second} | {m['p95']:.1f} | {m['reference_ms']:.0f}"
        lines.append(f"| {m['operation']} | {cpu_columns} | {other_columns} |")
    return [*lines, "", "[All figures](postgresql.md)", "", "![CPU per request](postgresql-cpu.svg)", ""]


def profile_section(parts: Figures) -> list[str]:
    """Return the packages and functions that use most of the CPU of a web process."""
    if "profile" not in parts:
        return []
    lines = [
        "## CPU profile",
        "",
        "CPU time of a web process with one client, without the web server and the database. The columns on the right",
        "list the packages and functions that use most of it, in per cent.",
        "",
        "| operation | CPU ms | packages | functions |",
        "| --- | ---: | --- | --- |",
    ]
    for operation, figures in parts["profile"].items():
        packages = ", ".join(f"{name} {share:.0f}" for name, share in figures["packages"].items())
        top = list(figures["functions"].items())[:TOP_FUNCTIONS]
        functions = ", ".join(f"`{name.partition(',')[0]}` {share:.0f}" for name, share in top)
        lines.append(f"| {operation} | {figures['cpu']:.2f} | {packages} | {functions} |")
    return [*lines, ""]


def growth_section(parts: Figures) -> list[str]:
    if not {"postgresql", "postgresql-grown"} <= parts.keys():
        return []
    small = {measurement["operation"]: measurement for measurement in with_default_clients(parts["postgresql"])}
    lines = [
        "## Growth: 100,000 agents and 1,000,000 versions",
        "",
        "The factor compares the CPU time in multiples of the reference.",
        "",
        "| operation | CPU ms with 1,000 agents | with 100,000 agents | factor | target |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for large in with_default_clients(parts["postgresql-grown"]):
        before = small[large["operation"]]
        factor = large["cpu"] / large["reference_ms"] / (before["cpu"] / before["reference_ms"])
        figures = f"{before['cpu']:.2f} | {large['cpu']:.2f} | {factor:.2f} | {MAX_GROWTH}"
        lines.append(f"| {large['operation']} | {figures} |")
    return [*lines, "", "[All figures](postgresql-grown.md)", ""]


def sqlite_section(parts: Figures) -> list[str]:
    if "sqlite" not in parts:
        return []
    edit = next(m for m in with_default_clients(parts["sqlite"]) if m["operation"] == load.EDIT_SPREAD)
    return [
        "## SQLite, the embedded default",
        "",
        f"With {CLIENTS} concurrent writers the p95 of an edit is {edit['p95']:.0f} ms, and {edit['errors']} edits",
        f"failed. The target is {MAX_SQLITE_EDIT_P95} ms.",
        "",
        "[All figures](sqlite.md)",
        "",
    ]


def agent_runs_section(parts: Figures) -> list[str]:
    """Return the costs of runs of an agent on both databases."""
    if "agent-runs" not in parts:
        return []
    lines = [
        "## Runs of an agent whose model answers at once",
        "",
        "The model is a local server, whose CPU is not included. Every run and its events are stored. An answer has",
        "10 pieces of text. **First text** is the time from the first piece that the model sends to the first text",
        f"that the client receives. Targets: {RUN_TARGETS}.",
        "",
        "| database | request | clients | CPU ms | of it database ms | runs/s | first text p50 ms | p95 ms | errors "
        "| reference ms |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for database, figures in parts["agent-runs"].items():
        for m in figures["runs"]:
            delays = [m["first_text_p50"], m["first_text_p95"]]
            first_text = " | ".join("" if delay is None else f"{delay:.0f}" for delay in delays)
            cpu = f"{m['cpu']:.1f} | {m['database_cpu']:.1f} | {m['per_second']:.0f}"
            row = f"| {database} | {m['operation']} | {m['clients']} | {cpu} | {first_text} | {m['errors']}"
            lines.append(f"{row} | {m['reference_ms']:.0f} |")
    loads = ", ".join(f"{figures['load']:.0f} on {name}" for name, figures in parts["agent-runs"].items())
    lines += ["", f"Load of the machine by all programs: {loads}. A load above its cores inflates every figure."]
    return [*lines, *library_lines(parts), "", *piece_lines(parts["agent-runs"]), ""]


def library_lines(parts: Figures) -> list[str]:
    """Return what the agent library alone costs, below which no run can be."""
    if "agent-library" not in parts:
        return []
    cpu = parts["agent-library"]["cpu"]
    return [f"pydantic-ai and the client of its provider alone need {cpu:.1f} ms for such an answer."]


def piece_lines(databases: Figures) -> list[str]:
    """Return the table of the CPU per piece of text of long answers."""
    header = ["| database | pieces of the answer | CPU ms per piece | reference ms |", "| --- | ---: | ---: | ---: |"]
    return header + [
        f"| {database} | {m['pieces']:,} | {m['cpu']:.2f} | {m['reference_ms']:.0f} |"
        for database, figures in databases.items()
        for m in figures["pieces"]
    ]


def figures_section(parts: Figures, part: str) -> list[str]:
    if part not in parts:
        return []
    figures = {
        name: f"{value:,}" if isinstance(value, int) else f"{value:,.1f}" for name, value in parts[part].items()
    }
    rows = [f"| {name} | {value} |" for name, value in figures.items()]
    return [f"## {FIGURE_TITLES[part]}", "", "| figure | value |", "| --- | ---: |", *rows, ""]


def soak_section(parts: Figures) -> list[str]:
    """Return what was seen in a long run of `python -m tests.operations.soak`."""
    if "soak" not in parts:
        return []
    soak = parts["soak"]
    statuses = ", ".join(f"{count:,} times {status}" for status, count in soak["statuses"].items())
    growth = ", ".join(f"{name} {factor:.2f}" for name, factor in soak["growth"].items())
    return [
        f"## {SOAK_TITLE}: {soak['minutes']:g} minutes on {soak['database']}",
        "",
        "Edits, publishing, runs, dropped streams, imports and pages at once. Every minute all processes of one kind",
        f"were killed, {soak['kills']} times in all. No acknowledged edit of {soak['acknowledged edits']:,} was lost.",
        f"Responses: {statuses}. {soak['unanswered']:,} requests lost their connection in a kill. From the second",
        f"to the last quarter of the time the figures grew by these factors: {growth}.",
        "",
        f"![{SOAK_TITLE}](soak.svg)",
        "",
    ]


def with_default_clients(measurements: list[Figures]) -> list[Figures]:
    return [measurement for measurement in measurements if measurement["clients"] == CLIENTS]


if __name__ == "__main__":
    render()
