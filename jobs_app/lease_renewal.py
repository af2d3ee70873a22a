"""The lease of a job while its handler works."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection

from agentcms.db.outages import OUTAGE_ERRORS
from jobs_app.models import Job, LeaseLost

log = logging.getLogger(__name__)


@contextmanager
def renewed_lease(job: Job, give_up: Callable[[], object]) -> Iterator[None]:
    """Renew the lease of a job by a thread during the block. Call `give_up` after `JOB_TIMEOUT` without progress."""
    ended = threading.Event()
    job.progressed_at = time.monotonic()
    thread = threading.Thread(target=_renew, args=(job, ended, give_up), name="job-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _renew(job: Job, ended: threading.Event, give_up: Callable[[], object]) -> None:
    """Renew the lease until the work ends, or until another worker has the job. The work itself notices that later."""
    # Often enough that one renewal may fail before the lease ends.
    while not ended.wait(settings.JOB_LEASE / 4):
        try:
            job.renew_lease()
            if time.monotonic() - job.progressed_at > settings.JOB_TIMEOUT:
                give_up()
                return
        except LeaseLost:
            return
        except OUTAGE_ERRORS as error:
            log.warning("The lease of job %s could not be renewed. The next try follows: %s", job.pk, error)
        finally:
            # It is that of this thread. Django closes only those of requests and tasks.
            connection.close()
