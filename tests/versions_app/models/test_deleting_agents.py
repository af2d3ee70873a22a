"""Deleting agents with their history."""

import pytest

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, UserFactory
from versions_app.models import Activation, AgentVersion

pytestmark = pytest.mark.django_db


def create_history(agent_id):
    """Return an agent with a draft, a restored, a pinned and a pruned version."""
    agent = AgentFactory(id=agent_id)
    with change(actor=UserFactory()):
        for name in ("A", "B", "C", "D", "E"):
            agent.edit({"name": name})
        AgentVersion.objects.snapshot(agent, pinned=True)
        agent.versions.last().restore()
    with change(publish=False):
        agent.edit({"name": "Draft"})
    return agent


def all_rows(agent_id):
    return [
        list(model.objects.filter(**{key: agent_id}).order_by("pk").values())
        for model, key in ((Agent, "pk"), (AgentVersion, "agent_id"), (Activation, "agent_id"))
    ]


@pytest.mark.parametrize(
    "delete",
    [lambda agent: agent.delete(), lambda agent: Agent.objects.filter(pk=agent.pk).delete()],
    ids=["one", "a queryset"],
)
def test_deleting_an_agent_deletes_only_its_own_history(settings, delete):
    settings.AGENT_VERSION_LIMIT = 5
    gone, other = create_history("gone"), create_history("kept")
    before = all_rows(other.pk)

    deleted, of = delete(gone)

    assert all_rows("gone") == [[], [], []]
    assert all_rows("kept") == before
    assert of["agents_app.Agent"] == 1
    assert deleted == sum(of.values())


def test_all_agents_can_be_deleted_at_once():
    for agent_id in ("a", "b", "c"):
        create_history(agent_id)

    Agent.objects.all().delete()

    assert not AgentVersion.objects.exists()
    assert not Activation.objects.exists()


def test_deleting_agents_keeps_their_authors():
    ann = UserFactory()
    with change(actor=ann):
        AgentFactory(id="a").delete()

    ann.refresh_from_db()


def test_deleting_an_agent_twice_is_no_error():
    agent = AgentFactory()
    again = Agent.objects.get(pk=agent.pk)

    agent.delete()

    assert again.delete()[0] == 0
