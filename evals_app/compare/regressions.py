"""The items of an experiment whose scores are lower than in an earlier one."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from evals_app.models import Experiment, ExperimentResult
from evals_app.scorers.directions import find_inverted_scorers

EACH_SCORE = {
    "postgresql": {
        "entries": 'jsonb_to_recordset(r.scores) AS e("scorerId" text, score double precision)',
        "scorer": 'e."scorerId"',
        "score": "e.score",
    },
    "sqlite": {
        "entries": "json_each(r.scores) AS e",
        "scorer": "json_extract(e.value, '$.scorerId')",
        "score": "json_extract(e.value, '$.score')",
    },
}
# Repeats are averaged within an item first. An item that failed only now got worse than any score can say.
# The cast is for PostgreSQL, which rounds no double to digits. There are as many digits as in `rank_items`.
WORSE_RESULTS = """
    WITH done AS (
        SELECT item_id, scores, CASE experiment_id WHEN %(after)s THEN 1 ELSE 0 END AS is_after,
            CASE WHEN error IS NULL THEN 0 ELSE 1 END AS failed
        FROM evals_app_experimentresult WHERE experiment_id IN (%(before)s, %(after)s) AND state = 'done'
    ), means AS (
        SELECT r.item_id, AVG(CASE is_after WHEN 0 THEN {score} END) AS before,
            AVG(CASE is_after WHEN 1 THEN {score} END) AS after,
            CASE WHEN {scorer} IN ({inverted}) THEN -1 ELSE 1 END AS direction
        FROM done r, {entries} GROUP BY r.item_id, {scorer}
    ), changes AS (
        SELECT item_id, AVG((after - before) * direction) AS change FROM means GROUP BY item_id
    ), failures AS (
        SELECT item_id,
            MAX(CASE is_after WHEN 1 THEN failed END) - MAX(CASE is_after WHEN 0 THEN failed END) AS failure
        FROM done GROUP BY item_id
    ), ranked AS (
        SELECT failures.item_id, ROUND(CAST(COALESCE(change, 0) - failure AS numeric), 12) AS change
        FROM failures LEFT JOIN changes ON changes.item_id = failures.item_id
    )
    SELECT r.id FROM ranked
    JOIN evals_app_experimentresult r ON r.item_id = ranked.item_id
    WHERE r.experiment_id = %(after)s AND r.state = 'done' AND ranked.change < 0
    ORDER BY ranked.change, r.item_id, r.attempt
"""


def find_baseline(experiment: Experiment) -> Experiment | None:
    """Return the last complete experiment before this one with its dataset and target, or None."""
    earlier = Experiment.objects.filter(
        dataset=experiment.dataset_id,
        target_type=experiment.target_type,
        target_id=experiment.target_id,
        status=Experiment.Status.COMPLETED,
        created_at__lt=experiment.created_at,
    )
    return earlier.order_by("-created_at").first()


def find_worse_results(baseline: Experiment, candidate: Experiment) -> list[UUID]:
    """Return the results of items that scored lower or failed only now, the worst item first.

    The database ranks the items as `rank_items` does: the scores of two large experiments take seconds to load.
    """
    # SQLite stores a UUID as text, without hyphens.
    before, after = (ExperimentResult._meta.pk.get_db_prep_value(one.pk, connection) for one in (baseline, candidate))
    inverted = {f"key{n}": key for n, key in enumerate(sorted(find_inverted_scorers(baseline, candidate)))}
    names = ", ".join(f"%({name})s" for name in inverted) or "NULL"  # `IN ()` is not SQL
    statement = WORSE_RESULTS.format(**EACH_SCORE[connection.vendor], inverted=names)
    with connection.cursor() as cursor:
        cursor.execute(statement, {"before": before, "after": after, **inverted})
        return [UUID(str(result_id)) for (result_id,) in cursor.fetchall()]
