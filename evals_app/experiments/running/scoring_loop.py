"""Scoring of several answers at once, in an event loop of its own: a judge takes seconds, and mostly waits."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from uuid import UUID

from agentcms.wire.json_types import JSONObject
from evals_app.experiments.results import fill_from_run, store_result, store_scored
from evals_app.experiments.scoring import MAX_SCORERS, compute_scores, scorer_keys, set_scores
from evals_app.experiments.spending import Spent, total_spent
from evals_app.models import ExperimentResult
from runs_app.models import AgentRun

Scores = Future[list[JSONObject]]


class ScoringLoop:
    """The answers of one experiment that are scored in this process, at most `limit` at once.

    Only the thread that owns it reads and writes results. Scores of a loop that is closed are stored by nobody.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open: dict[UUID, tuple[ExperimentResult, Scores]] = {}  # by the ID of the result
        self.scorers = asyncio.Semaphore(MAX_SCORERS)
        self.closing = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_full(self) -> bool:
        return len(self.open) >= self.limit

    @property
    def spent(self) -> Spent:
        """The spending of the runs whose answers are scored now."""
        return total_spent(Spent(result.tokens, result.cost) for result, _ in self.open.values())

    def submit(self, result: ExperimentResult, run: AgentRun | None) -> bool:
        """Start to score the answer of a run that has ended. Without scorers, store its result at once.

        Return True if this process has stored it.
        """
        result.run = run
        fill_from_run(result, run)
        keys = scorer_keys(result.experiment, result.item_version) if result.error is None else []
        if not keys:
            return store_result(result)
        scores = asyncio.run_coroutine_threadsafe(compute_scores(result, keys, self.scorers), self.start())
        self.open[result.pk] = (result, scores)
        return False

    def store_finished(self) -> int:
        """Store the results whose scorers have finished. Return the number of those that nobody else has stored."""
        return sum(self.store_if_scored(key) for key in [*self.open])

    def store_if_scored(self, key: UUID) -> bool:
        """Store a result if its scorers have finished. Return False if they have not, or another process stored it.

        Raise the error of a scorer that is not a score, such as one of the database.
        """
        result, scores = self.open[key]
        if not scores.done():
            return False
        del self.open[key]
        set_scores(result, scores.result())
        return store_scored(result)

    def pause(self, seconds: float) -> None:
        """Wait for this many seconds, or until an answer is scored."""
        if self.open:
            wait([scores for _, scores in self.open.values()], seconds, FIRST_COMPLETED)
        else:
            time.sleep(seconds)

    def start(self) -> asyncio.AbstractEventLoop:
        """Return the running loop."""
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            # A daemon: the process may end while a judge does not answer.
            threading.Thread(target=self.run, args=[self.loop], name="experiment-scoring", daemon=True).start()
        return self.loop

    def run(self, loop: asyncio.AbstractEventLoop) -> None:
        # At its end it cancels the tasks that are open, and closes the loop.
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self.closing.wait())

    def close(self) -> None:
        """Cancel what is open, and wait for nothing."""
        self.open.clear()
        if self.loop is not None:
            with suppress(RuntimeError):  # it was closed before
                self.loop.call_soon_threadsafe(self.closing.set)
