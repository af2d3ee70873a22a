"""Scores of the answers of agents in use, by stored scorers and by evaluators of pydantic-evals.

evaluator("short-answer", title="Short answer")(MaxLength(200))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from agentcms.db.column_values import ColumnValues
from agents_app.registry import Entry, Kind, registry
from evals_app.scorers.kinds.evaluators import score_by_evaluator
from evals_app.scorers.results import ScorerError, answer_of_run
from evals_app.scorers.snapshots import UNKNOWN_SCORER_MESSAGE, find_stored_version, score_by_snapshot
from runs_app.models import AgentRun
from runs_app.scoring import ScorerTimeout, within_limit


class LiveScorer(NamedTuple):
    """A callable for the registry that scores a run by the version that was live then."""

    scorer_id: str
    version_number: int

    @property
    def limits_itself(self) -> bool:
        """Return True: it ends by itself after `SCORER_TIMEOUT`."""
        return True

    def __call__(self, run: AgentRun) -> ColumnValues:
        """Return the score of a run with everything that its row stores."""
        version = find_stored_version(self.scorer_id, self.version_number)
        if version is None:
            return {"error": UNKNOWN_SCORER_MESSAGE.format(key=self.scorer_id)}
        return asyncio.run(score_by_snapshot(version.snapshot, answer_of_run(run), self.version_number)).columns


class LiveEvaluator(NamedTuple):
    """A callable for the registry that scores a run by an evaluator."""

    target: Any

    @property
    def limits_itself(self) -> bool:
        """Return True: it ends by itself after `SCORER_TIMEOUT`."""
        return True

    def __call__(self, run: AgentRun) -> ColumnValues:
        """Return the score of a run."""
        try:
            return asyncio.run(within_limit(score_by_evaluator(self.target, answer_of_run(run)))).columns
        except (ScorerError, ScorerTimeout) as error:
            return {"error": str(error)}


Evaluator = TypeVar("Evaluator")


def evaluator(key: str, *, title: str = "", description: str = "") -> Callable[[Evaluator], Evaluator]:
    """Register an evaluator as a scorer. Its booleans are the scores 0 and 1."""

    def register(target: Evaluator) -> Evaluator:
        registry.add(Entry(Kind.SCORER, key, title or key, description, target=LiveEvaluator(target)))
        return target

    return register
