"""The work on an experiment in the foreground, for commands: without a broker, and without other jobs."""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress

from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from agentcms.wire.json_types import JSONObject
from evals_app.experiments.ending import CANCELLED_MESSAGE, mark_cancelled
from evals_app.experiments.jobs import fail_after_error, is_outage
from evals_app.experiments.running.interruptions import interruption_restored, interruptions_ignored, note_handled
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.experiments.stopping import end_at_once, end_early
from evals_app.models import Experiment
from jobs_app import runner
from jobs_app.models import Job, LeaseLost

log = logging.getLogger(__name__)

MAX_OUTAGE = 300.0  # seconds without the database or Valkey after which the command gives up
OUTAGE_PAUSE = 1.0  # seconds before the next try
COMMAND_JOB = "run_experiment_command"
KILLED_MESSAGE = (
    "The command that ran this experiment was killed before its end. Results stay. Retry the failed items, or run the "
    "command again."
)


def create_command_job(experiment: Experiment) -> Job:
    """Create the job of a command, in the transaction that stores its experiment.

    A killed command cannot end its experiment. A worker takes this job over once its lease is no longer renewed.
    """
    return Job.objects.create_claimed(COMMAND_JOB, {"experiment": str(experiment.pk)})


def run_to_end(experiment: Experiment, job: Job) -> None:
    """Run an experiment with the job of its command in this process until it ends. An interruption cancels it.

    A second one ends it without a wait for its runs and their scores. Raise the error of an outage that does not end,
    and LeaseLost if a worker has ended the experiment because this process was suspended for too long.
    """
    item_loop = ItemLoop(experiment, job)
    try:
        work_through_outages(item_loop)
    except KeyboardInterrupt:
        cancel_interrupted(experiment, item_loop)
        raise
    except LeaseLost:
        raise
    except Exception as error:
        fail_after_error(experiment, error, item_loop.scoring)
        raise
    finally:
        item_loop.close()
        # After an outage that does not end, a worker ends the experiment.
        with suppress(LeaseLost, DatabaseError):
            job.finish({"done": experiment.done_count})


@runner.job_handler(COMMAND_JOB, "Experiment of a command")
def end_abandoned_experiment(job: Job) -> JSONObject:
    """End the experiment of a command that was killed, in a worker."""
    experiment = Experiment.objects.unfinished().filter(pk=job.parameters["experiment"]).first()
    if experiment is None:
        return {"done": 0}
    if experiment.cancel_requested_at is not None:
        end_early(experiment, Experiment.Status.CANCELLED, CANCELLED_MESSAGE)
    else:
        end_early(experiment, Experiment.Status.FAILED, KILLED_MESSAGE)
    return {"done": experiment.done_count}


def cancel_interrupted(experiment: Experiment, item_loop: ItemLoop) -> None:
    """Cancel an experiment that was interrupted."""
    note_handled()
    try:
        close_interrupted_query()
        with interruption_restored():
            mark_cancelled(experiment)
            end_early(experiment, Experiment.Status.CANCELLED, CANCELLED_MESSAGE, item_loop.scoring)
    except KeyboardInterrupt:
        with interruptions_ignored():
            close_interrupted_query()
            end_at_once(experiment, Experiment.Status.CANCELLED, CANCELLED_MESSAGE)


def close_interrupted_query() -> None:
    """Close the connection, with the query that was interrupted.

    SQLite refuses to write in a connection whose open query began before another process wrote: "database is locked".
    PostgreSQL refuses any query before the interrupted one has ended.
    """
    connection.close()


def work_through_outages(item_loop: ItemLoop) -> None:
    """Work until the experiment ends. Try again while the database or Valkey does not respond, as its job does."""
    since: float | None = None  # when the outage began
    while True:
        steps = item_loop.steps
        try:
            with interruption_restored():
                item_loop.renew()  # an outage may last longer than the lease
                item_loop.work(math.inf)
            return
        except Exception as error:
            if not is_outage(error):
                raise
            since = time.monotonic() if since is None or item_loop.steps > steps else since
            if time.monotonic() > since + MAX_OUTAGE:
                raise
            log.warning("A service does not respond (%s). The experiment goes on when it does.", type(error).__name__)
            time.sleep(OUTAGE_PAUSE)
            close_old_connections()
