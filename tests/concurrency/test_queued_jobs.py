"""Jobs that are not queued twice: one that waits must find what the transaction that needs it stores."""

import pytest
from django.db import OperationalError, transaction

from agentcms.db.lock_timeout import no_lock_wait
from jobs_app import runner
from jobs_app.models import Job
from tests.concurrently import run_concurrently

pytestmark = pytest.mark.django_db(transaction=True)

KIND = "reading"


def test_no_worker_claims_a_job_before_the_transaction_that_needs_it_has_ended():
    waiting = runner.enqueue_unless_queued(KIND, {})

    def claim():
        with no_lock_wait():
            return Job.objects.claim(waiting.pk)

    with transaction.atomic():
        assert runner.enqueue_unless_queued(KIND, {}) == waiting
        (early,) = run_concurrently([claim])
    (late,) = run_concurrently([claim])

    assert isinstance(early, OperationalError)
    assert late == waiting


def test_a_job_without_attempts_left_is_not_waited_for():
    Job.objects.create(kind=KIND, attempts=5)

    assert runner.enqueue_unless_queued(KIND, {}).attempts == 0
