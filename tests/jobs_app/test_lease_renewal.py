"""The lease of a job while its handler works."""

import threading

import pytest
from django.db import OperationalError

from jobs_app.lease_renewal import renewed_lease
from jobs_app.models import Job, LeaseLost


@pytest.fixture
def job(settings):
    settings.JOB_LEASE = 0.04
    settings.JOB_TIMEOUT = 60
    return Job()


def test_the_lease_is_renewed_until_the_work_ends(job, monkeypatch):
    """Also after an outage of the database."""
    errors, renewals, renewed = [OperationalError("gone")], [], threading.Event()

    def renew_lease(job):
        if errors:
            raise errors.pop()
        renewals.append(job)
        if len(renewals) == 2:
            renewed.set()

    monkeypatch.setattr(Job, "renew_lease", renew_lease)

    with renewed_lease(job, pytest.fail):
        assert renewed.wait(20)

    assert not any(thread.name == "job-lease" for thread in threading.enumerate())


def test_a_lost_lease_is_not_renewed(job, monkeypatch):
    calls, lost = [], threading.Event()

    def renew_lease(job):
        calls.append(job)
        lost.set()
        raise LeaseLost

    monkeypatch.setattr(Job, "renew_lease", renew_lease)

    with renewed_lease(job, pytest.fail):
        assert lost.wait(20)
        for thread in threading.enumerate():
            if thread.name == "job-lease":
                thread.join(20)

    assert len(calls) == 1


def test_a_job_without_progress_is_given_up(job, settings, monkeypatch):
    settings.JOB_TIMEOUT = 0
    given_up = threading.Event()
    monkeypatch.setattr(Job, "renew_lease", lambda job: None)

    with renewed_lease(job, given_up.set):
        assert given_up.wait(20)
