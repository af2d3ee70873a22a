"""The versions that saving an agent creates."""

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.test.utils import isolate_apps

from agentcms.ids import uuid7
from agents_app.editing.archive_guard import AgentArchived
from agents_app.models import Agent
from tests.factories import AgentFactory, archived_agent

pytestmark = pytest.mark.django_db

MODEL = {"provider": "demo", "name": "echo"}


def head(agent):
    return Agent.objects.with_versions().get(pk=agent.pk).head_version


def test_creating_an_agent_creates_its_first_version():
    agent = AgentFactory()

    version = agent.versions.get()

    assert (version.version_number, version.change_message, version.based_on) == (1, "Created", None)
    assert agent.active_version == agent.head_version == version


@isolate_apps("agents_app")
def test_a_proxy_model_creates_versions():
    class Assistant(Agent):
        class Meta:
            proxy = True
            app_label = "agents_app"

    made = Assistant(id="a", name="A", instructions="", model=MODEL)
    made.save()
    made.name = "B"
    made.save()
    Assistant.objects.get(pk="a").edit({"name": "C"})

    agent = Agent.objects.with_versions().get(pk="a")
    assert [version.snapshot["name"] for version in agent.versions.order_by("version_number")] == ["A", "B", "C"]
    assert agent.active_version == agent.head_version == agent.versions.first()


def test_a_save_with_a_change_creates_one_version():
    agent = AgentFactory()

    agent.name, agent.memory = "Porter", "last-messages"
    agent.save()

    assert agent.versions.count() == 2
    assert agent.head_version.changed_fields == ["name", "memory"]
    assert agent.head_version.change_message == ""
    assert agent.head_version.based_on == 1


def test_a_save_without_a_change_writes_nothing():
    agent = AgentFactory()
    before = Agent.objects.filter(pk=agent.pk).values().get()

    agent.save()

    assert agent.versions.count() == 1
    assert Agent.objects.filter(pk=agent.pk).values().get() == before


EQUAL = {
    "the order of keys": ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
    "an integer written as a float": ({"a": 1}, {"a": 1.0}),
    "a large integer written as a float": ({"a": 10**15}, {"a": 1e15}),
    "a negative zero": ({"a": 0}, {"a": -0.0}),
}
DIFFERENT = {
    "true and 1": ({"a": True}, {"a": 1}),
    "false and 0": ({"a": False}, {"a": 0}),
    "1 and a text": ({"a": 1}, {"a": "1"}),
    "null and nothing": ({"a": None}, {}),
    "the order of a list": ({"a": [1, 2]}, {"a": [2, 1]}),
    "an empty list and an empty object": ({"a": []}, {"a": {}}),
    "a composed and a decomposed letter": ({"a": "\u00e9"}, {"a": "e\u0301"}),
    "white space in a text": ({"a": "b"}, {"a": "b "}),
    "the last bit of a float": ({"a": 0.1}, {"a": 0.10000000000000002}),
    "neighbours beyond a double's integers": ({"a": 2**53}, {"a": 2**53 + 1}),
}


@pytest.mark.parametrize(("before", "after"), EQUAL.values(), ids=EQUAL)
def test_equal_json_is_no_change(before, after):
    agent = AgentFactory(metadata=before)

    agent.metadata = after
    agent.save()

    assert agent.versions.count() == 1


@pytest.mark.parametrize(("before", "after"), DIFFERENT.values(), ids=DIFFERENT)
def test_different_json_is_a_change(before, after):
    agent = AgentFactory(metadata=before)

    agent.metadata = after
    agent.save()

    assert head(agent).changed_fields == ["metadata"]
    assert repr(head(agent).snapshot["metadata"]) == repr(after)


def test_update_fields_saves_only_those_fields():
    agent = AgentFactory(name="Concierge")

    agent.name, agent.description = "Porter", "not to be saved"
    agent.save(update_fields=["name"])

    assert head(agent).changed_fields == ["name"]
    assert head(agent).snapshot["description"] == ""


def test_update_fields_without_a_change_creates_no_version():
    agent = AgentFactory()

    agent.name = "Porter"
    agent.save(update_fields=["memory"])

    assert agent.versions.count() == 1


def test_empty_update_fields_create_no_version():
    agent = AgentFactory()

    agent.name = "Porter"
    agent.save(update_fields=[])

    assert agent.versions.count() == 1


def test_a_field_accepts_a_database_expression():
    agent, other = AgentFactory(name="Concierge"), AgentFactory(name="Porter")

    agent.name = Concat(F("name"), Value(" at night"))
    agent.save()

    assert agent.name == head(agent).snapshot["name"] == "Concierge at night"
    assert agent.versions.count() == 2
    assert Agent.objects.get(pk=other.pk).name == "Porter"


def test_a_computed_value_is_validated():
    agent = AgentFactory(name="Concierge")

    agent.name = Concat(Value(" "), Value(" "))
    with pytest.raises(ValidationError, match="blank"):
        agent.save()

    assert Agent.objects.get(pk=agent.pk).name == "Concierge"
    assert agent.versions.count() == 1


def test_a_new_agent_accepts_a_database_expression():
    agent = Agent(id="night", name=Concat(Value("night "), Value("porter")), instructions="", model=MODEL)

    agent.save()

    assert agent.name == agent.head_version.snapshot["name"] == "night porter"


def test_a_computed_value_of_a_new_agent_is_validated():
    with pytest.raises(ValidationError, match="blank"):
        Agent(id="night", name=Concat(Value(" "), Value(" ")), instructions="", model=MODEL).save()

    assert not Agent.objects.exists()


def test_saving_an_archived_agent_is_refused():
    agent = archived_agent("night")

    agent.name = "Porter"
    with pytest.raises(AgentArchived):
        agent.save()

    assert agent.versions.count() == 1


def test_an_agent_with_deferred_fields_saves_the_loaded_ones():
    agent = AgentFactory(instructions="Greet guests.")

    partial = Agent.objects.only("name").get(pk=agent.pk)
    partial.name = "Porter"
    partial.save()

    assert head(agent).changed_fields == ["name"]
    assert head(agent).snapshot["instructions"] == "Greet guests."


def test_get_or_create_creates_one_version():
    for _ in range(2):
        agent, _ = Agent.objects.get_or_create(id="a", defaults={"name": "A", "instructions": "", "model": MODEL})

    assert agent.versions.count() == 1


def test_update_or_create_creates_a_version_for_each_change():
    for name in ("A", "B", "B"):
        defaults = {"name": name, "instructions": "", "model": MODEL}
        agent, _ = Agent.objects.update_or_create(id="a", defaults=defaults)

    assert [version.snapshot["name"] for version in agent.versions.all()] == ["B", "A"]


def test_every_way_to_save_refuses_an_invalid_agent():
    with pytest.raises(ValidationError, match="blank"):
        Agent.objects.create(id="a", name=" ", instructions="", model=MODEL)
    with pytest.raises(ValidationError, match="required"):
        Agent.objects.get_or_create(id="a", defaults={"name": "A", "model": {"provider": "demo"}})

    assert not Agent.objects.exists()


def test_the_instance_shows_the_saved_values():
    agent = AgentFactory()

    agent.name = "Porter"
    agent.save()

    assert vars(agent).keys() >= {"revision", "updated_at"}
    for name, value in Agent.objects.filter(pk=agent.pk).values().get().items():
        assert getattr(agent, name) == value, name


def take_next_version_number(agent, number):
    """Insert a version by SQL, so that the next version cannot be written."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO versions_app_agentversion (id, agent_id, version_number, name, snapshot, snapshot_hash,"
            ' "references", changed_fields, change_message, pinned, author_name, source, created_at)'
            ' SELECT %s, agent_id, %s, name, snapshot, snapshot_hash, "references", changed_fields,'
            " change_message, pinned, author_name, source, created_at"
            " FROM versions_app_agentversion WHERE agent_id = %s AND version_number = 1",
            [uuid7().hex, number, agent.pk],
        )


def test_an_edit_without_its_version_is_rolled_back():
    agent = AgentFactory(name="Concierge")
    take_next_version_number(agent, 2)
    before = Agent.objects.filter(pk=agent.pk).values().get()

    agent.name = "Porter"
    with pytest.raises(DatabaseError), transaction.atomic():
        agent.save()

    assert Agent.objects.filter(pk=agent.pk).values().get() == before
    assert agent.activations.count() == 1


def test_rolling_back_an_edit_removes_its_version():
    agent = AgentFactory(name="Concierge")

    agent.name = "Porter"
    with transaction.atomic():
        agent.save()
        transaction.set_rollback(True)

    assert head(agent).version_number == 1
    assert (agent.versions.count(), agent.activations.count()) == (1, 1)


def test_a_rolled_back_number_is_used_again():
    agent = AgentFactory()

    with transaction.atomic():
        agent.name = "Porter"
        agent.save()
        transaction.set_rollback(True)
    agent.name = "Butler"
    agent.save()

    assert head(agent).version_number == 2
    assert head(agent).snapshot["name"] == "Butler"
