"""Only saving an agent adds a version; every other write raises an error that names the supported way."""

import asyncio

import pytest

from agents_app.editing.change_context import change
from tests.factories import AgentFactory, UserFactory
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db

WAY_OUT = r"past the history\. Save the agent, or call its versions' snapshot\(\) or restore\(\)\."


@pytest.fixture
def agent():
    return AgentFactory()


MAKING = {
    "create": lambda agent, fields: AgentVersion.objects.create(**fields),
    "create of the agent's": lambda agent, fields: agent.versions.create(version_number=7),
    "get_or_create": lambda agent, fields: AgentVersion.objects.get_or_create(**fields),
    "update_or_create": lambda agent, fields: AgentVersion.objects.update_or_create(**fields),
    "bulk_create": lambda agent, fields: AgentVersion.objects.bulk_create([AgentVersion(**fields)]),
    "acreate": lambda agent, fields: asyncio.run(AgentVersion.objects.acreate(**fields)),
    "save": lambda agent, fields: AgentVersion(**fields).save(),
}


@pytest.mark.parametrize("make", MAKING.values(), ids=MAKING)
def test_creating_a_version_directly_is_refused(agent, make):
    with pytest.raises(TypeError, match=WAY_OUT):
        make(agent, {"agent": agent, "version_number": 7, "snapshot_text": "{}", "snapshot_hash": "x"})

    assert agent.versions.count() == 1


def test_update_of_immutable_fields_is_refused(agent):
    version = agent.versions.get()

    with pytest.raises(TypeError, match=r"update\(\) would change snapshot_text of versions"):
        agent.versions.update(snapshot_text="{}")
    with pytest.raises(TypeError, match=r"bulk_update\(\) would change version_number .* Call update_description\(\)"):
        AgentVersion.objects.bulk_update([version], ["version_number", "name"])


def test_name_and_message_of_a_version_can_be_changed(agent):
    version = agent.versions.get()

    version.update_description(name="First", pinned=True)
    agent.versions.filter(pk=version.pk).update(change_message="For the fair")

    version.refresh_from_db()
    assert (version.name, version.pinned, version.change_message) == ("First", True, "For the fair")


def test_a_version_outlives_its_author():
    author = UserFactory(username="ann")
    with change(actor=author):
        version = AgentFactory().versions.get()

    author.delete()

    version.refresh_from_db()
    assert (version.author, version.author_name) == (None, "ann")
