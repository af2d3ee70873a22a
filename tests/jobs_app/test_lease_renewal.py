"""The lease of a job during a long statement."""

import threading

import pytest
from django.db import OperationalError

from jobs_app.lease_renewal import renewed_lease
from jobs_app.models import Job, LeaseLost


@pytest.fixture
def job(settings):
    settings.JOB_LEASE = 0.04
    return Job(done=3)


def test_the_lease_is_renewed_until_the_statement_ends(job, monkeypatch):
    """Also after an outage of the database."""
    writes, errors, renewed = [], [OperationalError("gone")], threading.Event()

    def report_progress(job, *, done):
        if errors:
            raise errors.pop()
        writes.append(done)
        if len(writes) == 2:
            renewed.set()

    monkeypatch.setattr(Job, "report_progress", report_progress)

    with renewed_lease(job):
        assert renewed.wait(20)

    assert {*writes} == {3}
    assert not any(thread.name == "job-lease" for thread in threading.enumerate())


def test_a_lost_lease_ends_the_work_after_the_statement(job, monkeypatch):
    lost = threading.Event()

    def report_progress(job, *, done):
        lost.set()
        raise LeaseLost

    monkeypatch.setattr(Job, "report_progress", report_progress)

    with pytest.raises(LeaseLost), renewed_lease(job):
        assert lost.wait(20)
