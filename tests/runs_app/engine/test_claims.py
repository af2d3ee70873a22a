"""The record of processes that continued a durable run."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs_app.engine import leases
from runs_app.models import AgentRun
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


def test_a_process_that_takes_over_is_recorded_and_the_first_one_is_not():
    run = RunFactory(open=True, status="queued", is_durable=True)

    leases.claim(run.pk, "host:1:first")
    first = list(run.claims.all())
    AgentRun.objects.update(lease_until=timezone.now() - timedelta(minutes=5))
    leases.claim(run.pk, "host:2:second")

    assert first == []
    assert [(claim.holder, claim.segment, claim.process_name) for claim in run.claims.all()] == [
        ("host:2:second", 0, "host, process 2")
    ]
