"""The lease of a job while its handler works."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection

from agentcms.db.outages import OUTAGE_ERRORS
from jobs_app.models import Job, LeaseLost

log = logging.getLogger(__name__)


@contextmanager
def renewed_lease(job: Job) -> Iterator[None]:
    """Renew the lease of a job by a thread during the block, which may take long without a report of progress."""
    ended = threading.Event()
    thread = threading.Thread(target=_renew, args=(job, ended), name="job-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _renew(job: Job, ended: threading.Event) -> None:
    """Renew the lease until the work ends, or until another worker has the job. The work itself notices that later."""
    # Often enough that one renewal may fail before the lease ends.
    while not ended.wait(settings.JOB_LEASE / 4):
        try:
            job.renew_lease()
        except LeaseLost:
            return
        except OUTAGE_ERRORS as error:
            log.warning("The lease of job %s could not be renewed. The next try follows: %s", job.pk, error)
        finally:
            # It is that of this thread. Django closes only those of requests and tasks.
            connection.close()
