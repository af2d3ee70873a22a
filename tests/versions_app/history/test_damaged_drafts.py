"""Drafts of which a version is based on itself, as a fixture or raw SQL may store it. The check reports them."""

import pytest

from agents_app.editing.change_context import change
from agents_app.views.status import find_drafts
from tests.factories import AgentFactory
from tests.versions_app.integrity.test_check import write
from versions_app.history.draft import find_draft_versions
from versions_app.history.earlier_state import EarlierState

pytestmark = pytest.mark.django_db


def test_the_search_for_the_base_of_a_damaged_draft_ends():
    agent = AgentFactory()
    with change(publish=False):
        agent.edit({"name": "Porter"})
    write("versions_app_agentversion", agent, based_on=2)
    agent.refresh_from_db()

    assert [version.number for version in find_draft_versions(agent)] == [2]
    assert find_drafts([agent])[agent.pk].ahead == 1
    assert EarlierState(agent, agent.revision - 1).find_head().version_number == 2
