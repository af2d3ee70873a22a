"""The order of columns on SQLite, which reads long values to reach the columns behind them."""

import pytest
from django.db import connection

from knowledge_app.models import Document
from tests.migrated import migrate_to, new_database
from versions_app.models import AgentVersion

BEFORE = ("versions_app", "0008_empty_default_messages")
AFTER = ("versions_app", "0009_snapshot_last")

pytestmark = pytest.mark.sqlite_only


def columns_of(model):
    with connection.cursor() as cursor:
        return [column.name for column in connection.introspection.get_table_description(cursor, model._meta.db_table)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "last"), [(AgentVersion, ["snapshot"]), (Document, ["sections", "text", "content"])]
)
def test_long_values_are_in_the_last_columns(model, last):
    assert columns_of(model)[-len(last) :] == last


@pytest.mark.django_db(transaction=True)
def test_moving_a_column_keeps_rows_constraints_and_references_and_can_be_reversed():
    with new_database():
        before = migrate_to(BEFORE)
        agent = before.get_model("agents_app", "Agent").objects.create(id="greeter", name="Greeter", model={})
        row = {"agent": agent, "version_number": 1, "snapshot_hash": "0" * 64, "change_message": "First"}
        version = before.get_model("versions_app", "AgentVersion").objects.create(snapshot_text='{"a":1}', **row)
        before.get_model("agents_app", "Agent").objects.update(active_version=version)

        for target, is_last in ((AFTER, True), (BEFORE, False)):
            versions = migrate_to(target).get_model("versions_app", "AgentVersion")

            assert (columns_of(versions)[-1] == "snapshot") is is_last
            row_now = versions.objects.values_list("pk", "snapshot_text", "snapshot_hash", "change_message").get()
            assert row_now == (version.pk, '{"a":1}', "0" * 64, "First")
            with connection.cursor() as cursor:
                constraints = connection.introspection.get_constraints(cursor, versions._meta.db_table)
            assert "one_version_per_agent_and_number" in constraints
            connection.check_constraints()
