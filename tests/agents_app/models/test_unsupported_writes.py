"""Queryset methods that would bypass the history of agents."""

import asyncio

import pytest

from agents_app.configuration.schema import FIELDS
from agents_app.models import Agent
from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db

POINTERS = ["active_version", "head_version", "last_version_number", "revision"]


@pytest.fixture
def agent():
    return AgentFactory()


@pytest.mark.parametrize("field", FIELDS)
def test_update_of_configuration_fields_is_refused(agent, field):
    with pytest.raises(TypeError, match=rf"update\(\) would change {field} .* Call save\(\)"):
        Agent.objects.filter(pk=agent.pk).update(**{field: getattr(agent, field)})


@pytest.mark.parametrize("field", FIELDS)
def test_bulk_update_of_configuration_fields_is_refused(agent, field):
    with pytest.raises(TypeError, match=rf"bulk_update\(\) would change {field} .* Call save\(\)"):
        Agent.objects.bulk_update([agent], [field])


@pytest.mark.parametrize("field", POINTERS)
def test_update_of_a_pointer_is_refused(agent, field):
    with pytest.raises(TypeError, match=f"move {field} past the history"):
        Agent.objects.filter(pk=agent.pk).update(**{field: getattr(agent, field)})
    with pytest.raises(TypeError, match=f"move {field} past the history"):
        Agent.objects.bulk_update([agent], [field])


def test_update_of_a_pointer_by_its_column_is_refused(agent):
    with pytest.raises(TypeError, match="move active_version past the history"):
        Agent.objects.update(active_version_id=agent.active_version_id)


@pytest.mark.parametrize("options", [{}, {"ignore_conflicts": True}, {"update_conflicts": True}])
def test_bulk_create_is_refused(options):
    with pytest.raises(TypeError, match=r"without a version\. Call save\(\)"):
        Agent.objects.bulk_create([Agent(id="a", name="A")], **options)


def test_asynchronous_methods_are_refused(agent):
    for act in (
        lambda: Agent.objects.aupdate(name="x"),
        lambda: Agent.objects.abulk_update([agent], ["name"]),
        lambda: Agent.objects.abulk_create([agent]),
    ):
        with pytest.raises(TypeError, match=r"Call save\(\)"):
            asyncio.run(act())


def test_filtered_and_chained_querysets_are_refused(agent):
    with pytest.raises(TypeError, match="name"):
        Agent.objects.with_versions().exclude(pk="other").order_by("pk").update(name="x")
    with pytest.raises(TypeError, match="name"):
        Agent._default_manager.update(name="x")


def test_a_manager_cannot_delete(agent):
    with pytest.raises(AttributeError):
        Agent.objects.delete()


def test_update_of_other_fields_is_allowed(agent):
    assert Agent.objects.filter(pk=agent.pk).update(owner_id="bar") == 1


def test_a_refused_update_changes_nothing(agent):
    with pytest.raises(TypeError):
        Agent.objects.filter(pk=agent.pk).update(owner_id="bar", name="Porter")

    assert Agent.objects.get(pk=agent.pk).owner_id == ""
