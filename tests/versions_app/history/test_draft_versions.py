"""The versions of a draft after entries of the live history have expired."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory
from tests.versions_app.integrity.test_check import write
from versions_app.cleanup import expired_activations
from versions_app.history.draft import find_draft_versions
from versions_app.models import Activation

pytestmark = pytest.mark.django_db

OLD = timezone.now() - timedelta(days=800)


def draft_numbers(agent):
    return [version.number for version in find_draft_versions(Agent.objects.get(pk=agent.pk))]


def expire_entries(**lookups):
    """Let entries of the live history expire, and delete them as the nightly job does."""
    Activation.objects.filter(**lookups).update(created_at=OLD)
    expired_activations().delete()


def publish_five_versions():
    """Create another agent, whose versions have the same numbers."""
    agent = AgentFactory()
    for name in ("Two", "Three", "Four", "Five"):
        agent.edit({"name": name})


def save_draft(agent, name):
    with change(publish=False):
        agent.edit({"name": name})


def test_the_versions_of_a_draft_end_above_the_live_version_of_the_agent():
    save_draft(AgentFactory(), "Two of another agent")
    agent = AgentFactory()
    agent.edit({"name": "Two"})
    for name in ("Three", "Four"):
        save_draft(agent, name)

    assert draft_numbers(agent) == [4, 3]


def test_a_version_that_a_remaining_entry_replaced_is_not_of_the_draft():
    agent = AgentFactory()
    agent.edit({"name": "Two"})
    save_draft(agent, "Three")
    agent.versions.get(version_number=1).activate()

    expire_entries(to_version_number__in=[1, 2], from_version_number__in=[None, 1])
    expire_entries(to_version_number=2)

    assert not Activation.objects.filter(to_version_number=2).exists()
    assert draft_numbers(agent) == [3]


def test_an_old_version_below_the_live_one_is_not_of_the_draft():
    publish_five_versions()
    agent = AgentFactory()
    agent.edit({"name": "Two"})
    save_draft(agent, "Three")
    for name in ("Four", "Five"):
        with change(publish=True):
            agent.edit({"name": name})
    publish_five_versions()
    write("versions_app_agentversion", agent, created_at=OLD)
    agent.refresh_from_db()

    expire_entries()

    assert agent.activations.count() == 1
    assert draft_numbers(agent) == [3]
