"""The index of lists: a page of all agents, and their number, need no row of the table."""

import pytest
from django.db import connection, transaction
from django.test import RequestFactory

from agentcms.api.query_params import QueryParams
from agents_app.api.list_query import agent_keys, filter_agents, order_agents, parse_params
from agents_app.api.representation import agent_total
from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db


def explain(query):
    """Return the plan of a query as text, without scans of the table, which are as fast for a few rows."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
        plan = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
        cursor.execute(f"{plan} {query[0]}", query[1])
        return "\n".join(str(row) for row in cursor.fetchall())


@pytest.mark.parametrize("query", ["page", "total"])
def test_a_list_reads_its_index_alone(admin_user, query):
    AgentFactory()
    queries = {
        "page": agent_keys.bind("is_live", "-created_at", user=admin_user, window=slice(100, 200)),
        "total": agent_total.bind(user=admin_user),
    }

    plan = explain((queries[query].sql, queries[query].parameters))

    covering = "Index Only Scan using" if connection.vendor == "postgresql" else "USING COVERING INDEX"
    assert f"{covering} agent_listed" in plan
    if connection.vendor == "postgresql":
        assert "archived_at IS NULL" not in plan  # the condition of the index says it


def test_the_list_of_archived_agents_has_an_index(admin_user):
    AgentFactory()
    params = parse_params(QueryParams(RequestFactory().get("/", {"status": "archived"})))
    agents = order_agents(filter_agents(admin_user, params), params.index_flag, params.order_by)

    plan = explain(agents.values_list("pk")[:100].query.sql_with_params())

    assert "agent_archived" in plan
