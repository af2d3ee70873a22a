"""Lists of runs read an index, however many other runs there are."""

import pytest
from django.db import connection
from django.utils import timezone

from runs_app.models import AgentRun

pytestmark = pytest.mark.django_db


@pytest.fixture
def many_runs():
    """Store finished runs of many agents."""
    keys = (f"agent-{number % 100}" for number in range(1000))
    AgentRun.objects.bulk_create(
        AgentRun(agent_key=key, configuration={}, input={}, status="succeeded", finished_at=timezone.now())
        for key in keys
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE runs_app_agentrun")  # alone: the figures of other tables would stay


def test_the_runs_of_an_agent_are_found_by_an_index(many_runs):
    runs = AgentRun.objects.filter(agent_key="agent-7", parent=None).order_by("-created_at", "-id")

    assert "run_of_agent_key" in runs.explain()


@pytest.mark.parametrize("status", AgentRun.UNFINISHED_STATUSES)
def test_unfinished_runs_are_found_by_an_index_of_their_end(many_runs, status):
    AgentRun.objects.create(agent_key="a", configuration={}, input={}, status=status)
    runs = AgentRun.objects.filter(parent=None).with_status(status)

    assert runs.count() == 1
    plan = runs.order_by().explain()
    assert "run_finished" in plan or "run_leased" in plan
