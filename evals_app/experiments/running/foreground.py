"""The work on an experiment in the foreground, for commands: without a broker, and without other jobs."""

from __future__ import annotations

import logging
import math
import time

from django.db import close_old_connections, connection

from evals_app.experiments.ending import CANCELLED_MESSAGE, mark_cancelled
from evals_app.experiments.jobs import fail_after_error, is_outage
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.experiments.stopping import end_at_once, end_early
from evals_app.models import Experiment

log = logging.getLogger(__name__)

MAX_OUTAGE = 300.0  # seconds without the database or Valkey after which the command gives up
OUTAGE_PAUSE = 1.0  # seconds before the next try


def run_to_end(experiment: Experiment) -> None:
    """Run an experiment in this process until it ends. An interruption cancels it.

    A second one ends it without a wait for its runs and their scores. Raise the error of an outage that does not end.
    """
    item_loop = ItemLoop(experiment, None)
    try:
        work_through_outages(item_loop)
    except KeyboardInterrupt:
        try:
            close_interrupted_query()
            mark_cancelled(experiment)
            end_early(experiment, Experiment.Status.CANCELLED, CANCELLED_MESSAGE, item_loop.scoring)
        except KeyboardInterrupt:
            close_interrupted_query()
            end_at_once(experiment, Experiment.Status.CANCELLED, CANCELLED_MESSAGE)
        raise
    except Exception as error:
        fail_after_error(experiment, error, item_loop.scoring)
        raise
    finally:
        item_loop.close()


def close_interrupted_query() -> None:
    """Close the connection, with the query that was interrupted.

    SQLite refuses to write in a connection whose open query began before another process wrote: "database is locked".
    """
    connection.close()


def work_through_outages(item_loop: ItemLoop) -> None:
    """Work until the experiment ends. Try again while the database or Valkey does not respond, as its job does."""
    since: float | None = None  # when the outage began
    while True:
        steps = item_loop.steps
        try:
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
