"""The draft status of agents."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.editing.change_context import change
from agents_app.models import Agent
from agents_app.views.status import Draft, find_drafts
from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    """Return an agent with live version 2 and a draft of two more versions."""
    agent = AgentFactory()
    agent.edit({"description": "2"})
    with change(publish=False):
        agent.edit({"description": "3"})
        agent.edit({"description": "4"})
    return agent


def draft_of(agent):
    return find_drafts([Agent.objects.with_versions().get(pk=agent.pk)]).get(agent.pk)


def test_a_draft_counts_the_versions_since_live(agent):
    assert draft_of(agent) == Draft(ahead=2, based_on=2, live_changed=False)


def test_a_draft_notices_that_the_live_version_changed(agent):
    agent.versions.get(version_number=1).activate()

    assert draft_of(agent) == Draft(ahead=2, based_on=2, live_changed=True)


def test_a_draft_keeps_the_number_of_a_deleted_base_version(agent):
    agent.versions.get(version_number=1).activate()
    agent.versions.get(version_number=2).remove()

    assert draft_of(agent) == Draft(ahead=2, based_on=2, live_changed=True)


def test_an_agent_without_a_draft_has_no_draft_status(agent):
    assert draft_of(AgentFactory()) is None


def test_only_the_newest_activation_is_read(agent):
    first, second = agent.versions.order_by("version_number")[:2]
    for version in (first, second) * 3:
        version.activate()

    with CaptureQueriesContext(connection) as captured:
        assert draft_of(agent).live_changed

    about_moves = [query["sql"] for query in captured if "versions_app_activation" in query["sql"]]
    assert len(about_moves) == 2
    assert all("LIMIT 1" in sql and sql.index("LIMIT 1") > sql.index("versions_app_activation") for sql in about_moves)
