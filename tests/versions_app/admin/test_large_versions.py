"""The list of versions in the admin, when instructions are long."""

from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import AgentFactory, UserFactory
from tests.history_pages import edit


def test_rows_are_sorted_without_their_texts(client, db):
    agent = AgentFactory(instructions="Greet guests.")
    for number in range(3):
        edit(agent, instructions=f"Greet guests.\n{number}")
    client.force_login(UserFactory(is_superuser=True, is_staff=True))

    with CaptureQueriesContext(
        connection,
    ) as queries:
        page = client.get("/admin/versions_app/agentversion/").content.decode()

    (listing,) = (query["sql"] for query in queries if '"based_on"' in query["sql"] and "ORDER BY" in query["sql"])
    assert '"snapshot_text"' not in listing
    assert '"instructions"' not in listing
    assert sum('"snapshot_text"' in query["sql"] for query in queries) == 2  # of this page, and of their bases
    assert page.count("Instructions +1") >= 1
