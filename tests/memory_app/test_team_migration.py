"""The migration that stores the team of the agent of each thread."""

import pytest

from tests.migrated import migrate_to, new_database

pytestmark = pytest.mark.django_db(transaction=True)


def test_threads_store_the_present_team_of_their_agent():
    with new_database():
        before = migrate_to(
            ("memory_app", "0011_teams_of_agents_of_threads"), ("agents_app", "0015_fill_memory_choice")
        )
        agent = before.get_model("agents_app", "Agent").objects.create(id="concierge", owner_id="support", model={})
        threads = before.get_model("memory_app", "Thread").objects
        threads.create(key="t", realm="u1", agent=agent, agent_key="concierge")
        threads.create(key="other", realm="u1", agent_key="gone")

        after = migrate_to(("memory_app", "0012_fill_teams_of_agents"))

        rows = after.get_model("memory_app", "Thread").objects.values_list("key", "agent_owner_id")
        assert {*rows} == {("t", "support"), ("other", None)}
