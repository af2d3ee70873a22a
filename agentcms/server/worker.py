"""The Celery worker of one machine, with the beat in a thread of the same process.

A beat of its own would need as much memory again. Where there are many workers, `celery -A agentcms worker` and one
`celery -A agentcms beat` do the same.
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


def main() -> int:
    stopping = threading.Event()
    beat = EmbeddedService(app, thread=True, scheduler_cls=settings.CELERY_BEAT_SCHEDULER)
    work = beat.run

    def work_or_end() -> None:
        """A worker without its beat would look well and do half of its work: it ends, and is started again."""
        work()
        if not stopping.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    beat.run = work_or_end

    @worker_ready.connect(weak=False)
    def start_beat(**kwargs: Any) -> None:
        beat.start()

    @worker_shutting_down.connect(weak=False)
    def stop_beat(**kwargs: Any) -> None:
        stopping.set()
        beat.service.stop()

    # Not through `celery worker`, whose command line takes 10 MB. Threads, so that a job may wait while others work.
    alone = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
    worker = app.Worker(pool="threads", concurrency=THREADS, loglevel="INFO", quiet=True, **alone)
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main())
