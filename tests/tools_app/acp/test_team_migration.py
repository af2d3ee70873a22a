"""The migration that gives sessions and permissions of ACP agents a team, backwards."""

import pytest

from tests.migrated import migrate_to, new_database

BEFORE = [("tools_app", "0002_acp_agents")]
AFTER = [("tools_app", "0003_acp_sessions_by_team")]


@pytest.mark.django_db(transaction=True)
def test_it_can_be_reversed_after_two_teams_took_part_in_a_conversation():
    with new_database():
        after = migrate_to(*AFTER)
        agent = after.get_model("tools_app", "AcpAgent").objects.create(key="coder")
        resource = after.get_model("memory_app", "Resource").objects.create(realm="u1", key="u1")
        threads = after.get_model("memory_app", "Thread").objects
        thread = threads.create(realm="u1", key="t", resource=resource, resource_key="u1")
        for owner_id in ("sales", "support"):
            row = {"agent": agent, "thread": thread, "owner_id": owner_id}
            session = {"version_number": 1, "session_id": owner_id}
            after.get_model("tools_app", "AcpSession").objects.create(**row, **session)
            permission = {"mark": "same", "option_kind": "allow_always"}
            after.get_model("tools_app", "AcpPermission").objects.create(**row, **permission)

        before = migrate_to(*BEFORE)

        # The previous release would use the session of one team for the other, and its permission.
        assert not before.get_model("tools_app", "AcpSession").objects.exists()
        assert not before.get_model("tools_app", "AcpPermission").objects.exists()
