"""Unfinished runs are found by an index, however many finished runs there are."""

import re

import pytest
from django.db import connection
from django.utils import timezone

from runs_app.engine import leases, run_ends
from runs_app.frequent_queries import cancel_requested_ids, leased_runs_of
from runs_app.models import AgentRun

pytestmark = pytest.mark.django_db


@pytest.fixture
def finished_runs():
    """Store many finished runs, as after a month of use."""
    runs = [
        AgentRun(agent_key="a", configuration={}, input={}, status="succeeded", finished_at=timezone.now())
        for _ in range(1000)
    ]
    AgentRun.objects.bulk_create(runs)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE runs_app_agentrun")  # alone: the figures of other tables would stay


@pytest.mark.parametrize(
    "query",
    [
        lambda: AgentRun.objects.unfinished().filter(agent_key="a").count(),
        lambda: leased_runs_of(user_id=1, agent_id="a"),
        lambda: leases.renew("here", [AgentRun().pk]),
        lambda: cancel_requested_ids(holder="here"),
        lambda: run_ends.end_lost_runs(),
        lambda: run_ends.cancel_abandoned_children(),
    ],
    ids=["unfinished runs", "limits", "renewed leases", "cancel requests", "expired leases", "abandoned children"],
)
def test_unfinished_runs_are_found_by_an_index(finished_runs, query, django_assert_max_num_queries):
    with django_assert_max_num_queries(4) as captured:
        query()

    plan = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        statements = [query["sql"] for query in captured if "SAVEPOINT" not in query["sql"]]
        assert len(statements) in (1, 2)
        for statement in statements:
            cursor.execute(f"{plan} {statement}")
            steps = str(cursor.fetchall()).lower()
            assert "index" in steps
            assert not re.search(r"(seq scan on|scan) runs_app_agentrun(?! using (covering )?index run_)", steps)
