"""Saving instances of agents that others changed since they were read."""

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    return AgentFactory(owner_id="kitchen")


@pytest.fixture
def stale(agent):
    """Return a second instance of the agent, which later changes make stale."""
    return Agent.objects.get(pk=agent.pk)


def row(agent):
    return Agent.objects.with_versions().get(pk=agent.pk)


def test_saving_a_stale_instance_moves_no_pointer(agent, stale):
    agent.name = "Porter"
    agent.save()

    stale.description = "Stale"
    stale.save()

    assert row(agent).head_version.version_number == row(agent).active_version.version_number == 3
    assert (row(agent).last_version_number, row(agent).revision) == (3, 3)


def test_saving_a_stale_instance_keeps_the_draft(agent, stale):
    with change(publish=False):
        agent.edit({"name": "Draft"})

    stale.description = "Stale"
    stale.save()

    assert row(agent).active_version.version_number == 1
    assert row(agent).head_version.version_number == 3


def test_saving_one_field_of_a_stale_instance_keeps_the_others(agent, stale):
    agent.edit({"name": "Porter"})

    stale.description = "Stale"
    stale.save(update_fields=["description"])

    assert row(agent).name == "Porter"
    assert row(agent).head_version.changed_fields == ["description"]


def test_saving_a_stale_instance_does_not_change_the_owner(agent, stale):
    agent.change_owner("bar")

    stale.name = "Porter"
    stale.save()

    assert row(agent).owner_id == "bar"


def test_an_instance_that_changed_the_owner_does_not_take_back_a_later_change(agent, stale):
    stale.owner_id = "bar"
    stale.save()
    agent.change_owner("cellar")

    stale.name = "Porter"
    stale.save()

    assert row(agent).owner_id == "cellar"


def test_an_owner_that_was_not_saved_yet_is_saved_later(agent):
    agent.owner_id = "bar"
    agent.save(update_fields=["name"])
    assert row(agent).owner_id == "kitchen"

    agent.save()

    assert row(agent).owner_id == "bar"


def test_saving_a_refreshed_stale_instance_does_not_change_the_owner(agent, stale):
    agent.change_owner("bar")
    stale.refresh_from_db()
    agent.change_owner("cellar")

    stale.name = "Porter"
    stale.save()

    assert row(agent).owner_id == "cellar"


def test_saving_an_instance_without_owner_does_not_change_the_owner(agent):
    partial = Agent.objects.defer("owner_id").get(pk=agent.pk)
    assert partial.owner_id == "kitchen"
    agent.change_owner("bar")

    partial.name = "Porter"
    partial.save()

    assert row(agent).owner_id == "bar"


def test_saving_another_field_does_not_change_the_owner(agent):
    agent.name, agent.owner_id = "Porter", "bar"

    agent.save(update_fields=["name"])

    assert row(agent).owner_id == "kitchen"


@pytest.mark.parametrize("fields", [None, ["owner_id"]])
def test_saving_a_new_owner_creates_no_version(agent, fields):
    agent.owner_id = "bar"

    agent.save(update_fields=fields)

    assert (row(agent).owner_id, row(agent).revision, row(agent).versions.count()) == ("bar", 2, 1)
    assert agent.etag == row(agent).etag


def test_an_invalid_owner_is_refused(agent):
    agent.owner_id = "a/b"

    with pytest.raises(ValidationError, match="slash"):
        agent.save()

    assert row(agent).owner_id == "kitchen"


@pytest.mark.parametrize("fields", [None, ["name"], ["owner_id"]])
def test_saving_an_instance_of_a_deleted_agent_is_refused(agent, stale, fields):
    agent.delete()

    stale.name, stale.owner_id = "Ghost", "bar"
    with pytest.raises(Agent.DoesNotExist):
        stale.save(update_fields=fields)

    assert not Agent.objects.exists()


def test_update_fields_refuses_pointers(agent):
    for name in ("active_version", "head_version", "last_version_number", "revision", "row_key"):
        with pytest.raises(TypeError, match=name):
            agent.save(update_fields=[name])


def test_pointers_set_on_an_instance_are_not_saved(agent):
    agent.edit({"name": "Porter"})

    agent.active_version = agent.head_version = agent.versions.get(version_number=1)
    agent.last_version_number = agent.revision = 0
    agent.description = "Changed"
    agent.save()

    assert row(agent).head_version.version_number == row(agent).active_version.version_number == 3


def test_a_new_agent_does_not_overwrite_an_existing_id(agent):
    with pytest.raises(IntegrityError), transaction.atomic():
        AgentFactory(id=agent.pk, name="Impostor")

    assert row(agent).name == "Concierge"
    assert row(agent).versions.count() == 1


def test_an_instance_saved_under_a_new_id_has_its_own_history(agent):
    agent.edit({"name": "Porter"})

    copy = Agent.objects.get(pk=agent.pk)
    copy.pk, copy._state.adding = "copy", True  # as Django documents for copying a row
    copy.save()

    assert row(copy).head_version == row(copy).active_version == row(copy).versions.get()
    assert (row(copy).last_version_number, row(copy).head_version.version_number) == (1, 1)
    assert row(copy).row_key != row(agent).row_key
    assert row(copy).created_at > row(agent).updated_at
    assert row(agent).versions.count() == 2


def test_a_new_agent_cannot_point_to_versions_of_another(agent):
    AgentFactory(id="thief", active_version=agent.active_version, head_version=agent.head_version)

    thief = Agent.objects.with_versions().get(pk="thief")

    assert thief.active_version == thief.head_version == thief.versions.get()
    assert thief.versions.get().change_message == "Created"


def test_changing_an_instance_does_not_change_its_snapshot(agent):
    agent.edit({"tools": ["calculator"]})
    agent.versions.get(version_number=1).activate()
    version = agent.versions.get(version_number=2)
    version.activate()

    version.agent.tools.append("word-count")

    assert version.snapshot["tools"] == ["calculator"]
    assert version.agent.resolved()["tools"] == ["calculator"]
