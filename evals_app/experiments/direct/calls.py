"""Calls of workflows and scorers with the items of an experiment, in threads of the process that works on it.

The rows know what was called. A call whose process died is made again, and a process that was given up stores nothing:
the number of retries of the row has changed.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from agentcms.db.connections import return_connection
from agentcms.errors import ApiError
from agentcms.wire.json_types import JSONObject
from evals_app.experiments.direct.targets import Callee
from evals_app.experiments.ending import stop_reason
from evals_app.experiments.items import insert_result, require_runnable, save_failure
from evals_app.experiments.results import LOST_CODE, MAX_ITEM_RETRIES, open_row, store_result
from evals_app.experiments.scoring import add_scores, scorer_keys
from evals_app.experiments.spending import add_earlier_spending, spent_by_result
from evals_app.models import Experiment, ExperimentResult, ItemVersion

log = logging.getLogger(__name__)

MAX_CALL = timedelta(minutes=10)  # after which a call from outside is taken for lost
DIED = {"message": "The process of this item died.", "code": LOST_CODE}


class Calls:
    """The calls of one experiment in this process."""

    def __init__(self, experiment: Experiment, callee: Callee) -> None:
        self.experiment, self.callee = experiment, callee
        self.open: dict[UUID, Future[bool]] = {}  # by the ID of the result
        self.pool = ThreadPoolExecutor(experiment.concurrency, thread_name_prefix="experiment")

    def start(self, version: ItemVersion, attempt: int) -> ExperimentResult | None:
        """Insert the row of an item and call its target after the commit. Return None if another process was first."""
        result = insert_call(self.experiment, version, attempt)
        if result is not None and result.state == ExperimentResult.State.RUNNING:
            transaction.on_commit(partial(self.submit, result))
        return result

    def submit(self, result: ExperimentResult) -> None:
        self.open[result.pk] = self.pool.submit(perform_call_in_thread, result, self.callee)

    def collect(self) -> int:
        """Return how many calls have ended since the last time. Make those again whose process died."""
        ended = [key for key, future in self.open.items() if future.done()]
        for key in ended:
            if (error := self.open.pop(key).exception()) is not None:
                log.warning("The result of item %s could not be stored: %s.", key, type(error).__name__)
        # One job at a time works on an experiment. So what runs, and is not open here, belongs to a process that died.
        running = self.experiment.results.filter(state=ExperimentResult.State.RUNNING).exclude(pk__in=[*self.open])
        for result in running.select_related("item_version"):
            result.experiment = self.experiment
            if result.retry_count >= MAX_ITEM_RETRIES or stop_reason(self.experiment):
                result.error, result.completed_at = DIED, timezone.now()
                store_result(result)
            elif take_over_call(result):
                self.submit(result)
        return len(ended)

    def close(self) -> None:
        """Wait for nothing. The calls that are still open store their results themselves."""
        self.pool.shutdown(wait=False)


def insert_call(experiment: Experiment, version: ItemVersion, attempt: int) -> ExperimentResult | None:
    """Insert the row of a call, with its error if it cannot be made. Return None if another process was first."""
    result = ExperimentResult(experiment=experiment, item_version=version, item_id=version.item_id, attempt=attempt)
    try:
        require_runnable(experiment, version)
    except ApiError as error:
        return save_failure(result, error, True)
    return result if insert_result(result) else None


def take_over_call(result: ExperimentResult) -> bool:
    """Take a call over from a process that died. Return False if another process was first."""
    rows = open_row(result)
    result.retry_count += 1
    result.started_at = timezone.now()
    return bool(rows.update(retry_count=F("retry_count") + 1, started_at=result.started_at))


def perform_call_in_thread(result: ExperimentResult, callee: Callee) -> bool:
    try:
        return perform_call(result, callee)
    finally:
        # Django closes connections at the end of a request or a task, and this thread has neither.
        connection.close()


def perform_call(result: ExperimentResult, callee: Callee) -> bool:
    """Call the target, score what it returned, and store both. Return False if the result is no longer wanted.

    Another process took over, or the experiment was ended. What the call has spent counts even so.
    """
    return_connection()
    started = time.monotonic()
    outcome = callee.call(result.effective_input)
    result.duration_ms = int((time.monotonic() - started) * 1000)
    values: JSONObject = {name: getattr(outcome, name) for name in ("output", "error", "tokens", "cost")}
    for name, value in values.items():
        setattr(result, name, value)
    if result.error is None:
        add_scores(result, scorer_keys(result.experiment, result.item_version))
    result.completed_at = timezone.now()
    is_stored = store_result(result)
    if not is_stored:
        add_earlier_spending(result.experiment_id, spent_by_result(result))
    return is_stored


def is_late_call(experiment: Experiment, result: ExperimentResult) -> bool:
    """Return whether a call from outside has taken so long that its process must have died."""
    is_running = result.state == ExperimentResult.State.RUNNING
    is_late = result.started_at < timezone.now() - MAX_CALL
    return is_running and is_late and experiment.target_type != Experiment.Target.AGENT


def insert_or_take_over(experiment: Experiment, version: ItemVersion, attempt: int) -> ExperimentResult | None:
    """Return the row of a call that this process has to make, or None if another one does so, or it cannot be made."""
    result = insert_call(experiment, version, attempt)
    if result is None:
        rows = experiment.results.select_related("item_version")
        earlier = rows.get(item=version.item_id, attempt=attempt)
        result = earlier if is_late_call(experiment, earlier) and take_over_call(earlier) else None
    if result is None or result.state != ExperimentResult.State.RUNNING:
        return None
    result.experiment = experiment
    return result
