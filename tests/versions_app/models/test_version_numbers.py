"""Numbering of versions."""

import pytest

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db


def numbers(agent):
    return list(agent.versions.order_by("version_number").values_list("version_number", flat=True))


def test_each_agent_numbers_its_own_versions():
    first, second = AgentFactory(), AgentFactory()
    for name in ("A", "B"):
        first.edit({"name": name})
        second.edit({"name": name})

    assert numbers(first) == numbers(second) == [1, 2, 3]


def test_every_new_version_takes_the_next_number():
    agent = AgentFactory()
    with change(publish=False):
        agent.edit({"name": "Draft"})
    with change(publish=True):
        agent.edit({"description": "Amended beside the draft"})
    AgentVersion.objects.snapshot(agent)
    agent.versions.get(version_number=1).restore()

    assert numbers(agent) == [1, 2, 3, 4, 5]


def test_the_number_of_a_deleted_version_is_not_reused():
    agent = AgentFactory()
    agent.edit({"name": "A"})
    agent.versions.get(version_number=1).activate()
    agent.versions.get(version_number=2).remove()

    agent.edit({"name": "B"})

    assert numbers(agent) == [1, 3]


def test_the_number_of_a_pruned_version_is_not_reused(settings):
    settings.AGENT_VERSION_LIMIT = 5
    agent = AgentFactory()

    for number in range(2, 10):
        agent.edit({"name": str(number)})

    assert numbers(agent) == [5, 6, 7, 8, 9]


def test_a_recreated_agent_starts_at_version_1():
    AgentFactory(id="a").edit({"name": "A"})
    before = Agent.objects.get(pk="a").etag
    Agent.objects.get(pk="a").delete()

    again = AgentFactory(id="a")

    assert numbers(again) == [1]
    assert again.etag != before
