"""The work on the items of an experiment in one process: it starts them and stores their results."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Exists, OuterRef
from django.utils import timezone

from access_app.models import ApiKey
from agentcms.db.locks import lock_name
from agentcms.errors import ApiError
from evals_app.experiments import targets
from evals_app.experiments.direct.calls import Calls
from evals_app.experiments.direct.targets import Callee
from evals_app.experiments.ending import count_so_far, finish_experiment, lock_if_startable, stop_reason
from evals_app.experiments.items import MustWait, start_item
from evals_app.experiments.results import MAX_ITEM_RETRIES, next_open_results, open_row, was_lost
from evals_app.experiments.running.interruptions import interruption_deferred
from evals_app.experiments.running.scoring_loop import ScoringLoop
from evals_app.experiments.stopping import STOP_SECONDS, end_at_once, end_early, end_stuck_run, stop_runs
from evals_app.models import DatasetItem, Experiment, ExperimentResult, ItemVersion
from jobs_app.models import Job
from runs_app.models import AgentRun
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from django.contrib.auth.models import User

POLL_INTERVAL = 0.1  # seconds
RENEWAL_INTERVAL = 3.0  # seconds between two renewals of the lease of the job
TARGET_CHECK_INTERVAL = 3.0  # seconds between two checks whether the user may still run the target
COLLECTING_SECONDS = 0.5  # before a loop looks at the budget again


class ItemLoop:
    """The loop that works on the items of an experiment in this process."""

    user: User  # who started the experiment, as of the last check

    def __init__(self, experiment: Experiment, job: Job | None) -> None:
        self.experiment, self.job = experiment, job
        self.agent: ResolvedAgent | None = None
        self.calls: Calls | None = None  # in place of an agent
        self.renewed_at = self.target_found_at = time.monotonic()
        self.scoring = ScoringLoop(experiment.concurrency)
        self.unscored = 0  # answers that are scored now or wait for it
        self.steps = 0  # that ended without an error
        self.failed_to_start = 0  # items that could not run, since they were counted last
        self.cursors = [UUID(int=0)] * experiment.repeats  # the last item that was started, by attempt

    def work(self, seconds: float) -> None:
        """Start items and store results until the experiment ends or the time is over."""
        deadline = time.monotonic() + seconds
        if not self.begin():
            return
        while not self.experiment.is_finished:
            is_over = time.monotonic() >= deadline
            # Open scores would be lost, and their judges asked and paid again in the next slice.
            if is_over and not (self.scoring.open or (self.calls and self.calls.open)):
                break
            if not self.step(may_start=not is_over):
                self.scoring.pause(POLL_INTERVAL)
            self.steps += 1
            self.renew()
        self.close()

    def close(self) -> None:
        """Wait for nothing. Calls that are still open store their results themselves; open scores are lost."""
        self.scoring.close()
        if self.calls is not None:
            self.calls.close()

    def begin(self) -> bool:
        """Find the target and mark the experiment as running. Return False if it cannot run."""
        # In each slice: the user may have lost the role since the start.
        if not self.find_target():
            return False
        experiment = self.experiment
        # Only in the first slice: later ones would set another time of the start.
        rows = Experiment.objects.filter(pk=experiment.pk, status=Experiment.Status.PENDING)
        rows.update(status=Experiment.Status.RUNNING, started_at=timezone.now())
        experiment.refresh_from_db(fields=["status", "started_at"])
        return True

    def find_target(self) -> bool:
        """Look up what the user may run now. Return False if it is nothing: the experiment has failed then."""
        experiment = self.experiment
        self.target_found_at = time.monotonic()
        try:
            self.user = self.load_user()
            target = targets.resolve_target(experiment, self.user)
        except (ApiError, PermissionDenied) as error:
            end_early(experiment, Experiment.Status.FAILED, str(error))
            return False
        if isinstance(target, Callee):
            self.calls = self.calls or Calls(experiment, target)
        else:
            self.agent = target
        return True

    def load_user(self) -> User:
        """Return the user who started the experiment, in the realm of the key that did. Raise ApiError if gone."""
        user = get_user_model().objects.filter(pk=self.experiment.created_by_id or 0).first()
        if user is None or not user.is_active:
            raise ApiError(403, "The account that started the experiment is not active.", "forbidden")
        # Without it, a key for end users would reach the conversations of its user.
        user.api_key = ApiKey(realm_owner=self.experiment.realm_owner)  # type: ignore[attr-defined]
        return user

    def step(self, may_start: bool = True) -> bool:
        """Store results, and start what is free. Return True if anything happened."""
        experiment = self.experiment
        experiment.refresh_from_db(fields=["cancel_requested_at", "status"])
        if experiment.is_finished:
            return True
        collected = self.collect(may_score=may_start) + self.failed_to_start
        if collected:
            count_so_far(experiment)
            if self.failed_to_start and not self.find_target():  # what fails an item may fail all of them
                return True
            self.failed_to_start = 0
        reason = stop_reason(experiment, self.scoring.spent)
        open_count = self.count_open()
        if reason:
            self.stop(reason, open_count)
            return collected > 0
        # Between two slices too: the account may be switched off, or the agent be archived, while runs take long.
        if may_start and time.monotonic() > self.target_found_at + TARGET_CHECK_INTERVAL and not self.find_target():
            return True
        started = self.start(open_count) if may_start else 0
        if not started and not open_count and next(self.waiting_items(1), None) is None:
            finish_experiment(experiment, Experiment.Status.COMPLETED)
        return bool(collected or started)

    def stop(self, reason: str, open_count: int) -> None:
        """Stop the open runs, and end the experiment once nothing is open.

        After a cancel it ends within seconds, without answers that are still scored: a judge may never answer.
        """
        experiment = self.experiment
        stop_runs(experiment)
        cancelled_at = experiment.cancel_requested_at
        if not open_count:
            finish_experiment(experiment, Experiment.Status.CANCELLED, reason)
        elif cancelled_at is not None and timezone.now() > cancelled_at + timedelta(seconds=STOP_SECONDS):
            end_at_once(experiment, Experiment.Status.CANCELLED, reason)

    def collect(self, may_score: bool = True) -> int:
        """Store what has ended, and start those runs again whose process died. Return the number of both."""
        if self.calls is not None:
            return self.calls.collect()
        ended, waiting, deadline = self.scoring.store_finished(), 0, time.monotonic() + COLLECTING_SECONDS
        for result in next_open_results(self.experiment, [*self.scoring.open]):
            result.experiment = self.experiment
            run = result.run
            if run is not None and run.status in AgentRun.UNFINISHED_STATUSES:
                end_stuck_run(run)
            elif was_lost(run) and result.retry_count < MAX_ITEM_RETRIES and not stop_reason(self.experiment):
                ended += self.start_again(result)
            elif self.scoring.is_full or not may_score:
                waiting += 1
            else:
                ended += self.scoring.submit(result, run)
            self.renew()
            if time.monotonic() > deadline:
                break
        self.unscored = waiting + len(self.scoring.open)
        return ended

    def start_again(self, result: ExperimentResult) -> bool:
        """Start an item whose process died, unless the experiment ends. Return whether it started.

        Another process may have started it, after this one lost its lease and before it noticed.
        """
        with contextlib.suppress(MustWait), transaction.atomic():
            if self.agent is not None and lock_if_startable(self.experiment) and open_row(result).exists():
                start_item(self.experiment, result.item_version, self.agent, self.user, earlier=result)
                return True
        return False

    def count_open(self) -> int:
        return self.experiment.results.filter(state=ExperimentResult.State.RUNNING).count()

    def count_free(self, open_count: int) -> int:
        """Return how many items may start beside those that are open.

        While answers are scored other items run, at most as many again. An experiment with a budget does not run
        ahead of its judges, whose cost could be above it.
        """
        concurrency, budget = self.experiment.concurrency, self.experiment.budget
        has_budget = not {"maxCost", "maxTokens"}.isdisjoint(name for name in budget if budget[name] is not None)
        ahead = 0 if has_budget else min(self.unscored, concurrency)
        return max(0, concurrency + ahead - open_count)

    def start(self, open_count: int) -> int:
        """Start as many items as the limits allow. Return their number."""
        if not self.count_free(open_count):
            return 0
        started = 0
        with interruption_deferred(), transaction.atomic():
            # Otherwise two workers could count the same free slots.
            lock_name("runs of experiments")
            if not lock_if_startable(self.experiment):
                return 0
            # Counted again: another worker may have started items before this one had the lock.
            free_count = min(self.count_free(self.count_open()), free_slots(self.experiment))
            for version, attempt in self.waiting_items(free_count):
                try:
                    result = self.start_item(version, attempt)
                except MustWait:
                    break
                self.failed_to_start += result is not None and result.state == ExperimentResult.State.DONE
                self.cursors[attempt] = version.item_id
                started += 1
        return started

    def start_item(self, version: ItemVersion, attempt: int) -> ExperimentResult | None:
        """Start the run of an item, or the call of a target that is not an agent. Raise MustWait."""
        if self.calls is not None:
            return self.calls.start(version, attempt)
        return start_item(self.experiment, version, self.agent, self.user, attempt=attempt) if self.agent else None

    def waiting_items(self, count: int) -> Iterator[tuple[ItemVersion, int]]:
        """Yield the next items without a result, with the number of the attempt."""
        experiment = self.experiment
        items = ItemVersion.objects.at_version(experiment.dataset_version).filter(dataset=experiment.dataset_id)
        # One that was purged after the start is part of the total. It fails when it starts.
        not_purged = DatasetItem.objects.not_purged_before(experiment.created_at)
        for attempt in range(experiment.repeats):
            results = experiment.results.filter(item=OuterRef("item"), attempt=attempt)
            # Past the cursor in both tables, or each look would go over all items that are done.
            cursor = self.cursors[attempt]
            rows = items.filter(~Exists(results), item_id__gt=cursor, item__in=not_purged.filter(pk__gt=cursor))
            for version in rows.prefetch_related("item").order_by("item_id")[:count]:
                yield version, attempt
                count -= 1
            if count <= 0:
                return

    def renew(self) -> None:
        """Renew the lease of the job. Raise LeaseLost if another worker has taken it over."""
        if self.job is not None and time.monotonic() > self.renewed_at + RENEWAL_INTERVAL:
            self.renewed_at = time.monotonic()
            self.job.report_progress(done=self.experiment.done_count, total=self.experiment.total_items)


def free_slots(experiment: Experiment) -> int:
    """Return the number of runs and calls that may start now. Owners with experiments share the slots."""
    running = AgentRun.objects.leased().filter(experiment_id__isnull=False, parent=None).order_by()
    counts = Counter(dict(running.values_list("owner_id").annotate(Count("pk"))))
    calls = ExperimentResult.objects.filter(
        state=ExperimentResult.State.RUNNING, run=None, experiment__status=Experiment.Status.RUNNING
    )
    counts.update(dict(calls.order_by().values_list("experiment__target_owner_id").annotate(Count("pk"))))
    owners = Experiment.objects.unfinished().filter(is_external=False).order_by()
    owner_count = max(1, owners.values("target_owner_id").distinct().count())
    # Rounded up, or with more owners than slots nobody would have one.
    share = math.ceil(settings.EXPERIMENT_RUNS / owner_count) - counts[experiment.target_owner_id]
    slots: int = min(share, settings.EXPERIMENT_RUNS - counts.total())
    return max(0, slots)
