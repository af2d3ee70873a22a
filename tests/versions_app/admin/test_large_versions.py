"""The list of versions in the admin, when instructions are long."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import AgentFactory, UserFactory
from tests.history_pages import edit
from versions_app.admin.versions import AgentVersionAdmin


def test_rows_are_sorted_without_their_texts(client, db):
    agent = AgentFactory(instructions="Greet guests.")
    for number in range(3):
        edit(agent, instructions=f"Greet guests.\n{number}")
    client.force_login(UserFactory(is_superuser=True, is_staff=True))

    with CaptureQueriesContext(connection) as queries:
        page = client.get("/admin/versions_app/agentversion/").content.decode()

    (listing,) = (query["sql"] for query in queries if '"based_on"' in query["sql"] and "ORDER BY" in query["sql"])
    assert '"snapshot"' not in listing
    assert '"instructions"' not in listing
    assert sum('"snapshot"' in query["sql"] for query in queries) == 1
    assert page.count("Instructions +1") >= 1


def test_summaries_are_made_once(client, db):
    agent = AgentFactory(instructions="Greet guests.")
    edit(agent, instructions="Greet guests.\nOpen the door.")
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    client.get("/admin/versions_app/agentversion/")

    with CaptureQueriesContext(connection) as queries:
        page = client.get("/admin/versions_app/agentversion/").content.decode()

    assert not [query["sql"] for query in queries if '"snapshot"' in query["sql"]]
    assert "Instructions +1" in page


@pytest.mark.parametrize("query", ["", "?p=2", "?q=agent"])
def test_the_database_sorts_only_the_ids_of_versions(client, db, monkeypatch, query):
    monkeypatch.setattr(AgentVersionAdmin, "list_per_page", 2)
    agent = AgentFactory(name="Agent")
    for number in range(3):
        edit(agent, description=f"Change {number}")
    client.force_login(UserFactory(is_superuser=True, is_staff=True))

    with CaptureQueriesContext(connection) as queries:
        client.get(f"/admin/versions_app/agentversion/{query}")

    (sorting,) = (query["sql"] for query in queries if "DESC LIMIT 2" in query["sql"])
    assert sorting.startswith('SELECT "versions_app_agentversion"."id" AS "pk" FROM')
    assert "IN (SELECT" not in sorting
