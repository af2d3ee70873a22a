"""The Celery worker of one machine, with beat in a thread of the same process.

A separate beat process would need as much memory again. An installation with several workers runs
`celery -A agentcms worker` and one `celery -A agentcms beat`.
"""

import os
import signal
import sys
import threading
from typing import Any

from celery.beat import EmbeddedService
from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings

from agentcms.celery import app

THREADS = 4
BEAT_STOP_TIMEOUT = 10  # seconds
QUEUES = ("celery", "runs")  # jobs, and messages about durable runs


def main() -> int:
    """Run the worker until a stop signal; return its exit code."""
    stopping = threading.Event()
    beat = build_beat(stopping)

    @worker_ready.connect(weak=False)
    def start_beat(**kwargs: Any) -> None:
        beat.start()

    @worker_shutting_down.connect(weak=False)
    def stop_beat(**kwargs: Any) -> None:
        stopping.set()
        beat.service.stop()

    # The command `celery worker` would use 10 MB more. Threads let a job wait while others run.
    alone = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
    worker = app.Worker(pool="threads", concurrency=THREADS, queues=QUEUES, loglevel="INFO", quiet=True, **alone)
    worker.start()
    if beat.is_alive():
        beat.join(BEAT_STOP_TIMEOUT)  # it writes its schedule to the disk
    return int(worker.exitcode or 0)


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


if __name__ == "__main__":
    sys.exit(main())
