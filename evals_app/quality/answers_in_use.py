"""The scores of answers in use, by version of an agent."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from django.db.models import Avg, Count, F
from django.utils import timezone

from agents_app.models import Agent
from evals_app.experiments.figures import half_interval
from runs_app.models import Score

MAX_SCORE_AGE = timedelta(days=90)


class OnlineScores(NamedTuple):
    """The mean of a version of a scorer over the answers of a version, with a 95 % interval."""

    scorer: str
    version_number: int
    scorer_version: int | None  # None for a scorer in code
    answer_count: int
    mean: float
    low: float
    high: float


def find_online_scores(agent: Agent) -> list[OnlineScores]:
    """Return the scores of the answers of an agent in the last 90 days, without those of experiments and people."""
    scores = Score.objects.filter(
        run__agent=agent,
        run__experiment_id=None,
        run__version_number__isnull=False,
        source=Score.Source.LIVE,
        score__isnull=False,
        created_at__gte=timezone.now() - MAX_SCORE_AGE,
    )
    columns = ("scorer", "run__version_number", "scorer_version")
    rows = scores.order_by().values_list(*columns)
    figures = rows.annotate(Count("pk"), Avg("score"), square=Avg(F("score") * F("score")))
    return [with_interval(*row) for row in figures.order_by(*columns)]


def with_interval(
    scorer: str, version_number: int, scorer_version: int | None, count: int, mean: float, mean_square: float
) -> OnlineScores:
    # With Bessel's correction, as `figures` of experiments. Rounding may make the difference negative.
    variance = max(0.0, mean_square - mean * mean) * count / max(count - 1, 1)
    spread = half_interval(variance, count)
    return OnlineScores(scorer, version_number, scorer_version, count, mean, mean - spread, mean + spread)
