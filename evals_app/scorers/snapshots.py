"""Scores of answers by the configuration of a version."""

from __future__ import annotations

import logging
from dataclasses import replace

from agentcms.wire.json_types import JSONMapping, JSONObject
from evals_app.models import Scorer, ScorerVersion
from evals_app.scorers.kinds.checks import score_by_check
from evals_app.scorers.kinds.judges import score_by_judge
from evals_app.scorers.kinds.pipelines import score_by_pipeline
from evals_app.scorers.kinds.trajectory import score_trajectory
from evals_app.scorers.results import Answer, NotScorable, ScorerError, ScoreResult
from evals_app.scorers.settings import settings_of
from evals_app.scorers.spending import Spending, current_spending
from runs_app.scoring import MAX_SCORE_ERROR_LENGTH, NOT_SCORABLE, ScorerTimeout, within_limit

log = logging.getLogger(__name__)

UNREADABLE_MESSAGE = "The model gave no answer that fits its schema, also when it was asked again."
UNKNOWN_SCORER_MESSAGE = "Unknown scorer '{key}'. Choose a registered scorer or create one."


def find_stored_version(
    scorer_id: str, version_number: int | None, owner_id: str | None = None
) -> ScorerVersion | None:
    """Return a version of a stored scorer, by default the live one, or None.

    With `owner_id`, only of a scorer that the owner may use: after its deletion, another team may take its ID.
    """
    scorers = Scorer.objects.filter(pk=scorer_id)
    scorers = scorers if owner_id is None else scorers.usable_by(owner_id)
    if version_number is not None:
        return ScorerVersion.objects.filter(scorer__in=scorers, version_number=version_number).first()
    row = scorers.select_related("live").first()
    return row.live if row is not None else None


async def score_by_snapshot(snapshot: JSONMapping, answer: Answer, version_number: int | None = None) -> ScoreResult:
    """Return the score of an answer by a configuration."""
    values = {**snapshot, **settings_of(snapshot)}
    # Null means not set, so that `get` returns the default.
    config = {name: value for name, value in values.items() if value is not None}
    spending = Spending()
    current_spending.set(spending)
    try:
        result = await within_limit(score_by_kind(snapshot["type"], config, answer))
    except NotScorable as error:
        result = ScoreResult(reason=str(error), label=NOT_SCORABLE)
    except (ScorerError, ScorerTimeout) as error:
        result = ScoreResult(error=str(error))
    except Exception as error:  # a provider or a registered step failed
        # Without the message, which may quote the answer.
        log.warning("A scorer of type %s failed: %s.", snapshot["type"], type(error).__name__)
        result = ScoreResult(error=describe_failure(error)[:MAX_SCORE_ERROR_LENGTH])
    # Also for a scorer that failed: its earlier requests cost money, too.
    return replace(result, usage=spending.tokens, cost=spending.cost, version_number=version_number)


def describe_failure(error: Exception) -> str:
    """Return why a scorer failed, in words where the model gave nothing that its schema accepts."""
    from pydantic_ai.exceptions import UnexpectedModelBehavior  # heavy

    if isinstance(error, UnexpectedModelBehavior) and "output retries" in error.message:
        return UNREADABLE_MESSAGE
    return f"{type(error).__name__}: {error}"


async def score_by_kind(kind: str, config: JSONObject, answer: Answer) -> ScoreResult:
    if kind == "check":
        return score_by_check(config, answer)
    if kind == "trajectory":
        return score_trajectory(config, answer)
    if kind == "pipeline":
        return await score_by_pipeline(config, answer)
    return await score_by_judge(config, answer)
