"""The list of the runs of one agent reads an index, however many runs others have."""

import pytest
from django.db import connection

from runs_app.models import AgentRun

pytestmark = pytest.mark.django_db


def test_the_runs_of_an_agent_are_found_by_an_index():
    others = (f"agent-{number % 100}" for number in range(1000))
    AgentRun.objects.bulk_create(AgentRun(agent_key=key, configuration={}, input={}) for key in others)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")

    runs = AgentRun.objects.filter(agent_key="agent-7", parent=None).order_by("-created_at", "-id")

    assert "run_of_agent_key" in runs.explain()
