"""Figures of runs, added up in the database."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, Case, Count, FloatField, Func, Q, Sum, Value, When
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Floor, Greatest, Ln, TruncDate
from django.db.models.sql.compiler import SQLCompiler

from runs_app.models import AgentRun, Score
from runs_app.models.daily_usage import DailyUsage
from runs_app.models.run_queryset import AgentRunQuerySet
from runs_app.usage.histogram import LOG_BASE, SHORTEST

UNSAVED_VERSION = 0  # stands for the version of runs of unsaved text


class UsageKey(NamedTuple):
    """The runs that figures are for: those of a version of an agent that ended on a day, for one owner of runs."""

    agent_id: str
    owner_id: str
    version_number: int
    day: date


@dataclass
class UsageFigures:
    """Figures of runs. The cost is None if it is unknown for all of them. Scores are by scorer: number and sum."""

    runs: int = 0
    errors: int = 0
    tokens: int = 0
    cost: Decimal | None = None
    durations: dict[int, int] = field(default_factory=dict)
    scores: dict[str, tuple[int, float]] = field(default_factory=dict)

    def add(self, other: UsageFigures) -> None:
        """Add the figures of other runs."""
        self.runs += other.runs
        self.errors += other.errors
        self.tokens += other.tokens
        if other.cost is not None:
            self.cost = (self.cost or Decimal()) + other.cost
        for bucket, count in other.durations.items():
            self.durations[bucket] = self.durations.get(bucket, 0) + count
        for scorer, (count, total) in other.scores.items():
            known_count, known_total = self.scores.get(scorer, (0, 0.0))
            self.scores[scorer] = (known_count + count, known_total + total)

    @classmethod
    def from_row(cls, row: DailyUsage) -> UsageFigures:
        durations = {int(bucket): count for bucket, count in row.durations.items()}
        scores = {scorer: (count, total) for scorer, (count, total) in row.scores.items()}
        return cls(row.runs, row.errors, row.tokens, row.cost, durations, scores)


class SecondsBetween(Func):
    """The seconds from one time to another. On SQLite, Django's difference would call Python for each row."""

    output_field = FloatField()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> object:
        return self.as_sql(compiler, connection, template="EXTRACT(EPOCH FROM %(expressions)s)", arg_joiner=" - ")

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        end, start = (f"julianday({compiler.compile(part)[0]})" for part in self.get_source_expressions())
        return f"(({end} - {start}) * 86400.0)", []


class UTCDay(TruncDate):
    """The day of a time. SQLite stores times in UTC, so its own function is enough; Django's would call Python."""

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        sql, parameters = compiler.compile(self.lhs)
        return f"date({sql})", parameters


def aggregate_runs(runs: AgentRunQuerySet) -> dict[UsageKey, UsageFigures]:
    """Return the figures of finished runs of stored agents, with two queries."""
    usage: dict[UsageKey, UsageFigures] = {}
    for *key, bucket, count, errors, tokens, cost in run_figures(runs):
        durations = {} if bucket is None else {int(bucket): count}  # None for runs that have never started
        figures = UsageFigures(count, errors, tokens or 0, None if cost is None else Decimal(cost), durations)
        usage.setdefault(UsageKey(*key), UsageFigures()).add(figures)
    for *key, scorer, count, total in score_figures(runs):
        usage.setdefault(UsageKey(*key), UsageFigures()).add(UsageFigures(scores={scorer: (count, total)}))
    return usage


def run_figures(runs: AgentRunQuerySet) -> Iterable[Any]:
    seconds = Greatest(SecondsBetween("finished_at", "started_at"), Value(SHORTEST))
    tokens = Coalesce(
        Cast(KT("usage__totalTokens"), BigIntegerField()),
        Coalesce(Cast(KT("usage__inputTokens"), BigIntegerField()), 0)
        + Coalesce(Cast(KT("usage__outputTokens"), BigIntegerField()), 0),
    )
    # PostgreSQL ignores NULL in GREATEST.
    bucket = Case(When(started_at__isnull=False, then=Floor(Ln(seconds) / Value(math.log(LOG_BASE)))))
    grouped = with_key(runs, "").annotate(bucket=bucket)
    figures: Iterable[Any] = grouped.values_list("agent_id", "owner_id", "version", "day", "bucket").annotate(
        run_count=Count("pk"),
        error_count=Count("pk", filter=Q(status=AgentRun.Status.FAILED)),
        token_count=Sum(tokens),
        total_cost=Sum("cost"),
    )
    return figures


def score_figures(runs: AgentRunQuerySet) -> Iterable[Any]:
    scores: Any = Score.objects.filter(run__in=runs.order_by(), score__isnull=False).order_by()
    grouped = with_key(scores, "run__")
    key = ("run__agent_id", "run__owner_id", "version", "day")
    figures: Iterable[Any]
    figures = grouped.values_list(*key, "scorer").annotate(score_count=Count("pk"), score_sum=Sum("score"))
    return figures


def with_key(rows: Any, path: str) -> Any:
    """Annotate the version and the day of `UsageKey`. `path` leads from the rows to the runs."""
    return rows.order_by().annotate(
        version=Coalesce(f"{path}version_number", UNSAVED_VERSION), day=UTCDay(f"{path}finished_at", tzinfo=UTC)
    )
