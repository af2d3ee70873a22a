"""The start and the stop of the machinery of runs in a process."""

from __future__ import annotations

from contextlib import suppress

from django.db import Error as DatabaseError

from agentcms.process.shutdown import on_shutdown
from agentcms.tracing import spans
from runs_app.engine import engine, reaper, workers
from runs_app.engine.runners import get_runner
from runs_app.events import streams


def start_web_process() -> None:
    """Start to look after runs whose processes have died."""
    reaper.start_reaper()


def start_worker(queues: set[str]) -> None:
    """Prepare a worker that consumes these queues."""
    if "runs" in queues:
        engine.get_engine().is_worker = True
        get_runner().start_worker()
        get_runner().take_next()
        # Last, because web processes leave their runs to a worker that has reported itself.
        reaper.start_reaper(report_worker)
    else:
        reaper.start_reaper()


def report_worker() -> None:
    """Let the web processes know that this worker executes runs, until it stops.

    A worker that cannot import what executes runs does not: the web processes would leave runs to it for ever.
    """
    running = engine.get_engine()
    if running.execute_run is not None and not running.is_stopping:
        workers.record_worker()


def shut_down_worker() -> None:
    """Hand over the runs of this worker."""
    if (running := engine.find_engine()) is not None:
        running.is_stopping = True  # so that the reaper writes no further heartbeat
    # First, because tools may take seconds to finish: until then, new runs would be left to this worker.
    with suppress(DatabaseError):  # the heartbeat expires by itself within seconds
        workers.end_heartbeat()
    shut_down_runs()


@on_shutdown
def shut_down_runs() -> None:
    """End or hand over the runs of this process, then release all readers, including those of other runs."""
    get_runner().drain()
    # After the ends are written, which the readers of these runs still get.
    streams.stop_streams()
    spans.shut_down()
