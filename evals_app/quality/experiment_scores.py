"""The scores of an experiment as one list, over all its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from agentcms.wire.json_types import JSONObject
from evals_app.models import Experiment, ExperimentResult

# The place of an entry in the list of its result, and its score.
ENTRIES = {
    "postgresql": {
        "entries": "jsonb_array_elements(r.scores) WITH ORDINALITY AS e(value, number)",
        "place": "e.number - 1",
        # The null of JSON is not that of SQL here.
        "score": "NULLIF(e.value -> 'score', 'null'::jsonb)",
    },
    "sqlite": {
        "entries": "json_each(r.scores) AS e",
        "place": "e.key",
        "score": "json_extract(e.value, '$.score')",
    },
}
SCORED = """
    FROM evals_app_experimentresult r, {entries}
    WHERE r.experiment_id = %s AND r.state = 'done' AND {score} IS NOT NULL
"""
COUNT = f"SELECT COUNT(*) {SCORED}"
PAGE = f"SELECT r.id, {{place}} {SCORED} ORDER BY r.completed_at DESC, r.id DESC, {{place}} LIMIT %s OFFSET %s"


ScorePlace = tuple[UUID, int]  # the result, and the place in its list


class ExperimentScore(NamedTuple):
    """A score of a result, with its place in the list of the result."""

    result: ExperimentResult
    place: int

    @property
    def entry(self) -> JSONObject:
        entry: JSONObject = self.result.scores[self.place]
        return entry


def count_scores(experiment: Experiment) -> int:
    """Return the number of scores that the scorers of an experiment gave."""
    return int(_select(COUNT, experiment)[0][0])


def places_of_scores(experiment: Experiment, start: int, stop: int) -> list[ScorePlace]:
    """Return where some of the scores are that the scorers of an experiment gave, the newest answer first."""
    return [(UUID(str(key)), int(place)) for key, place in _select(PAGE, experiment, stop - start, start)]


def read_scores(experiment: Experiment, places: Sequence[ScorePlace]) -> list[ExperimentScore]:
    """Return the scores of an experiment at these places, with their results."""
    results = experiment.results.select_related("item_version").in_bulk({key for key, _ in places})
    scores = [ExperimentScore(results[key], place) for key, place in places if key in results]
    return [score for score in scores if score.place < len(score.result.scores)]  # one may be scored again just now


def _select(statement: str, experiment: Experiment, *values: int) -> list[tuple[Any, ...]]:
    # SQLite stores a UUID as text, without hyphens.
    key = Experiment._meta.pk.get_db_prep_value(experiment.pk, connection)
    with connection.cursor() as cursor:
        cursor.execute(statement.format(**ENTRIES[connection.vendor]), [key, *values])
        return list(cursor.fetchall())
