"""Titles and targets of the figures in docs/benchmarks."""

from __future__ import annotations

from benchmarks import load

CHARTS = (("cpu", "CPU per request, ms"), ("p95", "p95, ms"), ("per_second", "Requests per second"))
# CPU milliseconds per request, and requests per second, on PostgreSQL with 8 clients.
TARGETS = {
    load.READ: (0.8, 1700),
    load.LIST_AGENTS: (3.0, 400),
    load.EDIT_SPREAD: (4.0, 360),
    load.EDIT_AT_LIMIT: (5.0, 240),
    load.LIST_VERSIONS: (1.5, 900),
    load.COMPARE: (1.0, 1300),
}
# Runs of an agent: CPU milliseconds of a run with 8 clients and of a piece of text, runs per second, and milliseconds
# from the first text of the model to that of the client.
RUN_TARGETS = "15 ms of CPU with 8 clients, 60 runs/s, 30 ms to the first text, 0.4 ms of CPU for a piece of text"
MAX_GROWTH = 1.5
MAX_SQLITE_EDIT_P95 = 80  # milliseconds
LOAD_TITLES = {
    "postgresql": "PostgreSQL, 1,000 agents",
    "postgresql-grown": "PostgreSQL, 100,000 agents and 1,000,000 versions",
    "sqlite": "SQLite, 1,000 agents",
}
FIGURE_TITLES = {
    "footprint": (
        "The embedded stack with 1,000 agents (targets: start 8 s, memory 350 MB, editor page 60 ms, restart 3 s)"
    ),
    "prune": "The retention job with 1,000,000 versions and concurrent activations",
    "exchange": "Import and export of 10,000 agents on PostgreSQL",
    "durable": "Durable runs on SQLite: the cost of the journal in one process, with a model that answers at once",
    "durable-postgresql": "Durable runs on PostgreSQL",
    "suspended": "10,000 runs that wait for people, on SQLite",
    "suspended-postgresql": "10,000 runs that wait for people, on PostgreSQL",
    "takeover": "Killed workers: a web server and two workers on PostgreSQL",
    "kills": "100 kills on SQLite: test_deployments.py of `make drill`",
    "tools": (
        "Tools from outside on SQLite: MCP servers, the response cache, background tasks and knowledge bases (the "
        "least of several times)"
    ),
    "tools-postgresql": "Tools from outside on PostgreSQL",
    "memory": "Conversations on SQLite: recall among 121,000 messages, windows, signals, and processes that embed",
    "memory-postgresql": "Conversations on PostgreSQL, compared by numpy and by pgvector",
    "evaluations": (
        "Evaluations and tracing on SQLite: experiments, comparisons and their pages (requests: the least of several)"
    ),
    "evaluations-postgresql": "Evaluations and tracing on PostgreSQL",
}
SOAK_TITLE = "Mixed load with kills"
SOAK_FIGURES = {
    "megabytes": "Memory of all processes (PSS) in MB",
    "connections": "Open connections",
    "files": "Open files",
}
