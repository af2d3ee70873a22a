"""The migration that gives sessions and permissions of ACP agents a team, backwards."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from memory_app.models import Resource, Thread
from tests.migrated import restore_copy
from tools_app.models import AcpAgent, AcpPermission, AcpSession

BEFORE = [("tools_app", "0002_acp_agents")]

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(targets):
    MigrationExecutor(connection).migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.fixture
def restored_database():
    """Use a new database after the test."""
    yield
    restore_copy()


def test_it_can_be_reversed_after_two_teams_took_part_in_a_conversation(restored_database):
    agent = AcpAgent.objects.create(key="coder")
    resource = Resource.objects.create(realm="u1", key="u1")
    thread = Thread.objects.create(realm="u1", key="t", resource=resource, resource_key="u1")
    for owner_id in ("sales", "support"):
        row = {"agent": agent, "thread": thread, "owner_id": owner_id}
        AcpSession.objects.create(**row, version_number=1, session_id=owner_id)
        AcpPermission.objects.create(**row, mark="same", option_kind="allow_always")

    before = migrate(BEFORE)

    # The previous release would use the session of one team for the other, and its permission.
    assert not before.get_model("tools_app", "AcpSession").objects.exists()
    assert not before.get_model("tools_app", "AcpPermission").objects.exists()
