"""A Celery worker, by default with beat in a thread of the same process.

    python -m agentcms.server.worker [--queues celery,runs] [--threads 4] [--without-beat]

A separate beat process would need as much memory again. An installation with several workers runs them without beat,
and one `celery -A agentcms beat`.
"""

import argparse
import atexit
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

from celery.beat import EmbeddedService
from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings

from agentcms.celery import app
from agentcms.process.module_loading import loading_modules

BEAT_STOP_TIMEOUT = 10  # seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the worker until a stop signal; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queues", default="celery,runs", help="jobs, and messages about durable runs")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--without-beat", action="store_true")
    options = parser.parse_args(arguments)
    # The command `celery -A agentcms worker` would use 10 MB more. Threads let a job wait while others run.
    # Workers of Celery would send each other events, and each start would wait a second for answers of others. Nothing
    # here uses that.
    alone = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
    queues = options.queues.split(",")
    with loading_modules():
        # With threads, Celery does not notice lost tasks (`task_reject_on_worker_lost`). Leases in the database do.
        worker = Worker(
            pool="threads", concurrency=options.threads, queues=queues, loglevel="INFO", quiet=True, **alone
        )
    if options.without_beat:
        worker.start()
    else:
        start_with_beat(worker)
    return int(worker.exitcode or 0)


class Worker(app.Worker):  # type: ignore[name-defined]
    """A Celery worker that stops at SIGHUP as at SIGTERM, or ignores it under `nohup`."""

    def install_platform_tweaks(self, worker: Any) -> None:
        is_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        super().install_platform_tweaks(worker)
        # Celery would execute this file again by its path, from which Python does not find the project.
        signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.getsignal(signal.SIGTERM))


def start_with_beat(worker: Any) -> None:
    """Run the worker and beat until a stop signal."""
    stopping = threading.Event()
    beat = build_beat(stopping)

    @worker_ready.connect(weak=False)
    def start_beat(**kwargs: Any) -> None:
        beat.start()

    @worker_shutting_down.connect(weak=False)
    def stop_beat(**kwargs: Any) -> None:
        stopping.set()
        beat.service.stop()

    worker.start()
    if beat.is_alive():
        beat.join(BEAT_STOP_TIMEOUT)  # it writes its schedule to the disk


def build_beat(stopping: threading.Event) -> Any:
    """Return a beat thread that stops the process if beat fails, so that the supervisor restarts both."""
    beat = EmbeddedService(app, thread=True, scheduler_cls=settings.CELERY_BEAT_SCHEDULER)
    run = beat.run

    def run_or_terminate() -> None:
        # A worker without beat would look healthy but start no scheduled job.
        run()
        if not stopping.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    beat.run = run_or_terminate
    return beat


def end_process(exit_code: int) -> NoReturn:
    """End this process with the handlers of its exit, but without waiting for its threads.

    Those that have work to finish have ended by now. Python would also wait for a tool whose call was given up, and
    whose run was handed over: one without a timeout may go on for ever.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


if __name__ == "__main__":
    end_process(main())
