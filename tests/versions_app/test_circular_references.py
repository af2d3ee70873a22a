"""Circular references of sub-agents."""

import pytest

from agents_app.configuration.sub_agents import CircularReference
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, member
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db

PATH_MESSAGE = r"This is a circular reference: a → b → a\."


@pytest.fixture
def agent():
    """Create `a` and `b`, which names `a`. Return `a`."""
    AgentFactory(id="b", agents=["a"])
    return AgentFactory(id="a")


@pytest.fixture
def ann():
    """Make every change of a test as this user."""
    ann = member("publisher")
    with change(actor=ann):
        yield ann


def all_rows():
    return [list(model.objects.order_by("pk").values()) for model in (Agent, AgentVersion)]


def save(agent):
    agent.agents = ["b"]
    agent.save()


def save_by_name(agent):
    agent.agents = ["b"]
    agent.save(update_fields=["agents"])


def draft(agent):
    with change(publish=False):
        agent.edit({"agents": ["b"]})


SAVING = {
    "save": save,
    "save by name": save_by_name,
    "edit": lambda agent: agent.edit({"agents": ["x", "b"]}),
    "draft": draft,
    "update_or_create": lambda agent: Agent.objects.update_or_create(id="a", defaults={"agents": ["b"]}),
}


@pytest.mark.parametrize("act", SAVING.values(), ids=SAVING)
def test_a_save_with_circular_sub_agents_is_refused(agent, ann, act):
    before = all_rows()

    with pytest.raises(CircularReference) as refused:
        act(agent)

    assert refused.match(PATH_MESSAGE)
    assert all_rows() == before


def test_a_new_agent_cannot_be_its_own_sub_agent(ann):
    with pytest.raises(CircularReference, match="cannot be its own sub-agent"):
        AgentFactory(id="a", agents=["a"])

    assert not Agent.objects.exists()


@pytest.fixture
def draft_with_circular_reference(agent):
    """Return `a` with a draft that names `b`. Its live version does not."""
    draft(agent)
    return agent


def publish_unchanged(agent):
    with change(publish=True):
        agent.save()


PUBLISHING = {
    "activate": lambda agent: agent.versions.get(version_number=2).activate(),
    "restore": lambda agent: agent.versions.get(version_number=2).restore(),
    "publish": publish_unchanged,
}


@pytest.mark.parametrize("act", PUBLISHING.values(), ids=PUBLISHING)
def test_a_draft_with_circular_sub_agents_is_not_published(draft_with_circular_reference, ann, act):
    before = all_rows()

    with pytest.raises(CircularReference, match=PATH_MESSAGE):
        act(draft_with_circular_reference)

    assert all_rows() == before


def test_other_fields_of_an_agent_with_circular_sub_agents_can_be_changed(draft_with_circular_reference, ann):
    with change(publish=False):
        draft_with_circular_reference.edit({"name": "Porter"})
        draft_with_circular_reference.edit({"agents": []})

    assert draft_with_circular_reference.versions.count() == 4


def test_a_draft_can_be_discarded_where_live_has_circular_sub_agents(agent, ann):
    with change(actor=member("viewer", "elsewhere")):  # a user who does not see the circular reference
        agent.edit({"agents": ["b"]})
    with change(publish=False):
        agent.edit({"agents": []})

    assert AgentVersion.objects.discard_draft(agent)


def test_a_circular_reference_the_user_cannot_see_is_allowed(agent):
    with change(actor=member("manager", "elsewhere")):
        agent.edit({"agents": ["b"]})

    assert agent.active_version.version_number == 2


def test_changes_without_a_user_may_have_circular_sub_agents(agent):
    agent.edit({"agents": ["b"]})

    assert agent.versions.count() == 2
