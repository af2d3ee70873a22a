"""The indexes of versions, each of which every edit writes to."""

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db


def test_one_index_begins_with_the_author():
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, "versions_app_agentversion")

    indexes = [name for name, row in constraints.items() if row["index"] and row["columns"][0] == "author_id"]

    assert indexes == ["version_of_author"]
