"""The order in which PostgreSQL returns the members of a stored JSON object."""

import json

import pytest
from django.db import connection

from agentcms.wire.property_order import restore_property_order

NAMES = ["reason", "é", "Z", "a", "score", "aé", "aa", "aaa"]


@pytest.mark.django_db
@pytest.mark.postgres_only
def test_the_properties_of_a_stored_schema_get_their_order_back():
    schema = {"type": "object", "properties": {name: {} for name in NAMES}, "required": NAMES}
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb::text", [json.dumps(schema)])
        stored = json.loads(cursor.fetchone()[0])

    assert [*stored["properties"]] != NAMES
    assert [*restore_property_order(stored)["properties"]] == NAMES
