"""The choice in the editor whether runs of an agent are durable."""

import pytest
from django.urls import reverse

from agents_app.models import Agent
from tests.factories import AgentFactory
from tests.page_client import editor_form

pytestmark = pytest.mark.django_db


def send(client, agent, **changed):
    return client.post(reverse("agents:edit", args=[agent.pk]), editor_form(agent, publish="yes", **changed))


@pytest.mark.parametrize(
    ("mode", "steps", "stored"),
    [("yes", "", True), ("no", "", False), ("yes", "5", {"maxSteps": 5}), ("", "", None)],
)
def test_the_editor_stores_the_choice_in_a_version(publisher, mode, steps, stored):
    agent = AgentFactory(durable=None if stored is not None else True)

    assert send(publisher, agent, durable_mode=mode, durable_steps=steps).status_code == 302

    agent = Agent.objects.with_versions().get(pk=agent.pk)
    assert agent.durable == stored
    assert agent.active_version.version_number == 2
    assert agent.active_version.snapshot.get("durable") == stored


@pytest.mark.parametrize(
    ("mode", "steps", "message"),
    [
        ("no", "5", "Only a durable run has this limit. Choose Yes, or leave this blank."),
        ("yes", "0", "This must be a whole number above 0."),
        ("yes", "2.5", "This must be a whole number above 0."),
        ("yes", "five", "This must be a number, such as 0.7."),
    ],
)
def test_a_limit_that_cannot_be_used_is_refused(publisher, mode, steps, message):
    agent = AgentFactory()

    answer = send(publisher, agent, durable_mode=mode, durable_steps=steps)

    assert answer.status_code == 422
    assert [str(error) for error in answer.context["form"].errors["durable_steps"]] == [message]
    assert Agent.objects.get().durable is None


def test_a_new_limit_keeps_the_other_members(publisher):
    agent = AgentFactory(durable={"maxSteps": 3, "reason": "long orders"})

    send(publisher, agent, durable_steps="4")

    assert Agent.objects.get().durable == {"maxSteps": 4, "reason": "long orders"}


def test_a_page_of_an_earlier_release_changes_nothing(publisher):
    agent = AgentFactory(durable={"maxSteps": 3})
    data = editor_form(agent, publish="yes", name="Doorman")
    data = {name: value for name, value in data.items() if not name.startswith("durable")}

    publisher.post(reverse("agents:edit", args=[agent.pk]), data)

    agent = Agent.objects.get()
    assert (agent.name, agent.durable) == ("Doorman", {"maxSteps": 3})


def test_the_section_of_an_agent_with_a_choice_is_open(publisher):
    page = publisher.get(reverse("agents:edit", args=[AgentFactory(durable=False).pk]))

    assert "options" in page.context["form"].open_sections
