"""The rows of the tables of use: figures as texts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from runs_app.display.formats import format_cost, format_duration
from runs_app.usage.figures import UsageFigures
from runs_app.usage.report import UsageReport, mean_score, p95, version_label


class UsageRow(NamedTuple):
    """Figures of a version, on one day or on all. Unknown ones are blank."""

    version: str
    day: date | None
    runs: str
    errors: str
    error_share: str
    p95: str
    tokens: str
    cost: str
    score: str


def build_usage_row(version: int, figures: UsageFigures, day: date | None = None) -> UsageRow:
    score = mean_score(figures)
    return UsageRow(
        version=version_label(version),
        day=day,
        runs=f"{figures.runs:,}",
        errors=f"{figures.errors:,}",
        error_share=f"{100 * figures.errors / figures.runs:.0f}\N{NO-BREAK SPACE}%" if figures.errors else "",
        p95=format_duration(p95(figures)),
        tokens=f"{figures.tokens:,}",
        cost=format_cost(figures.cost),
        score="" if score is None else f"{score:.2f}",
    )


def total_rows(report: UsageReport) -> Sequence[UsageRow]:
    """Return one row per version, newest first."""
    return [build_usage_row(version, figures) for version, figures in report.totals.items()]


def day_rows(report: UsageReport) -> Sequence[UsageRow]:
    """Return one row per day and version, newest first."""
    keys = sorted(report.usage, reverse=True)
    return [build_usage_row(version, report.usage[day, version], day) for day, version in keys]
