"""An edit after a roll back, through each interface."""

import pytest
from django.test import Client
from django.urls import reverse

from agents_app.models import Agent
from tests.agents_app.admin.test_admin_saving import admin_form
from tests.api_client import Caller, agent_path, version_path
from tests.factories import AgentFactory, UserFactory, api_key
from tests.page_client import browser, editor_form
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db


class BySave:
    """An editor in code."""

    def activate(self, agent: Agent, version: AgentVersion) -> None:
        version.activate()

    def edit(self, agent: Agent, **fields: str) -> None:
        for name, value in fields.items():
            setattr(agent, name, value)
        agent.save()


class ByAPI:
    def __init__(self) -> None:
        self.caller = Caller(api_key(UserFactory(is_superuser=True)))

    def activate(self, agent: Agent, version: AgentVersion) -> None:
        self.caller.post(version_path(str(version.pk), "activate", agent_id=agent.pk))

    def edit(self, agent: Agent, **fields: str) -> None:
        self.caller.patch(agent_path(agent.pk), fields)


class ByForm:
    """An editor on the pages."""

    def __init__(self) -> None:
        self.client: Client = browser(UserFactory(is_superuser=True))

    def activate(self, agent: Agent, version: AgentVersion) -> None:
        sent = {"live": 7, "head": 7}
        self.client.post(reverse("versions:activate", args=[agent.pk, version.version_number]), sent)

    def edit(self, agent: Agent, **fields: str) -> None:
        self.client.post(reverse("agents:edit", args=[agent.pk]), editor_form(agent, publish="yes", **fields))


class ByAdmin:
    def __init__(self) -> None:
        self.client: Client = browser(UserFactory(is_superuser=True, is_staff=True))

    def activate(self, agent: Agent, version: AgentVersion) -> None:
        sent = {"action": "publish", "_selected_action": [version.pk], "confirmed": "yes"}
        sent["live"] = agent.active_version_id
        self.client.post(reverse("admin:versions_app_agentversion_changelist"), sent)

    def edit(self, agent: Agent, **fields: str) -> None:
        self.client.post(reverse("admin:agents_app_agent_change", args=[agent.pk]), admin_form(agent, **fields))


INTERFACES = [BySave, ByAPI, ByForm, ByAdmin]


@pytest.mark.parametrize("by_door", INTERFACES)
def test_the_next_edit_keeps_a_roll_back(by_door):
    door = by_door()
    agent = AgentFactory(description="1", instructions="Greet guests.")
    for number in range(2, 8):
        door.edit(agent, description=str(number))
        agent = Agent.objects.with_versions().get(pk=agent.pk)
    third = agent.versions.get(version_number=3)

    door.activate(agent, third)
    agent = Agent.objects.with_versions().get(pk=agent.pk)
    rolled_back = (agent.active_version, agent.head_version, agent.description)
    door.edit(agent, instructions="Greet guests by name.")

    agent = Agent.objects.with_versions().get(pk=agent.pk)
    made = agent.active_version
    assert rolled_back == (third, third, "3")
    assert (made.version_number, made.based_on, made.changed_fields) == (8, 3, ["instructions"])
    assert made.snapshot == {**third.snapshot, "instructions": "Greet guests by name."}
    assert agent.head_version == made
    assert [version.version_number for version in agent.versions.all()] == [8, 7, 6, 5, 4, 3, 2, 1]
