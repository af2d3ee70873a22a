"""Actions on versions with circular sub-agents."""

import pytest
from django.urls import reverse

from tests.factories import AgentFactory
from tests.history_pages import act, agent_state, edit, messages
from tests.page_client import editor_form

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def reversed_reference(agent):
    """Return an agent whose version 2 names `helper`, which names the agent now."""
    edit(agent, agents=["helper"])
    edit(agent, agents=[])
    AgentFactory(id="helper", agents=[agent.pk])
    return agent


def circle(agent):
    return f"This is a circular reference: {agent.pk} → helper → {agent.pk}."


@pytest.mark.parametrize(
    ("name", "sent"), [("activate", {}), ("restore", {"publish": "yes"}), ("restore", {"publish": "no"})]
)
def test_the_dialog_names_the_circular_reference(publisher, reversed_reference, name, sent):
    now = agent_state(reversed_reference)
    address = reverse(f"versions:{name}", args=[reversed_reference.pk, 2])

    answer = publisher.post(address, {"live": now.live, "head": now.head, **sent}, headers=HTMX)

    assert answer.status_code == 409
    assert circle(reversed_reference) in answer.content.decode()
    assert agent_state(reversed_reference) == now


def test_an_undo_names_the_circular_reference(publisher, reversed_reference):
    answer = publisher.post(
        reverse("versions:undo", args=[reversed_reference.pk, reversed_reference.activations.first().pk])
    )

    assert messages(answer) == [circle(reversed_reference)]
    assert agent_state(reversed_reference).live == 3


def test_a_discarded_draft_with_circular_sub_agents_is_not_restored(editor, agent):
    edit(agent, publish=False, agents=["helper"])
    act(editor, "discard_draft", agent)
    AgentFactory(id="helper", agents=[agent.pk])

    assert messages(act(editor, "bring_back", agent, 2))[-1] == circle(agent)
    assert agent_state(agent) == (1, 1, [1, 2])


def test_the_editor_does_not_publish_a_draft_with_circular_sub_agents(publisher, agent):
    edit(agent, publish=False, agents=["helper"])
    AgentFactory(id="helper", agents=[agent.pk])

    answer = publisher.post(reverse("agents:edit", args=[agent.pk]), editor_form(agent, publish="yes"))

    assert answer.status_code == 422
    assert circle(agent) in answer.content.decode()
    assert agent_state(agent) == (1, 2, [1, 2])


@pytest.mark.parametrize("address", ["versions:duplicate", "agents:selected"])
def test_a_duplicate_cannot_be_its_own_sub_agent(publisher, agent, address):
    copy = f"{agent.pk}-copy"
    edit(agent, agents=[copy])
    if address == "agents:selected":
        answer = publisher.post(reverse(address), {"act": "duplicate", "agent": [agent.pk]})
    else:
        sent = {"id": copy, "name": "Copy", "owner_id": ""}
        answer = publisher.post(reverse(address, args=[agent.pk, 2]), sent)

    assert "An agent cannot be its own sub-agent." in answer.content.decode()
    assert not type(agent).objects.filter(pk=copy).exists()
