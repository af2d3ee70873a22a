"""Receivers of `post_save` read the rows that a save wrote, wherever they are connected."""

from functools import partial

import pytest
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.db.models.signals import post_save, pre_save
from django.urls import reverse

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.agents_app.admin.test_admin_saving import admin_form
from tests.api_client import Caller, agent_path
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.page_client import browser, editor_form
from versions_app.exchange.records import Record, import_record
from versions_app.models import Activation, AgentVersion

pytestmark = pytest.mark.django_db

STORED = ("name", "owner_id", "head_version__version_number", "active_version__version_number", "revision")


def connect_first(signal, receiver, sender):
    """Connect a receiver before those of the application, as an app that is listed earlier does."""
    signal.connect(receiver, sender=sender, weak=False)
    signal.receivers.insert(0, signal.receivers.pop())
    signal.sender_receivers_cache.clear()


@pytest.fixture
def listen():
    """Return a function that connects a receiver until the test ends."""
    connected = []

    def connect(receiver, sender=Agent, signal=post_save):
        connect_first(signal, receiver, sender)
        connected.append(partial(signal.disconnect, receiver, sender=sender))

    yield connect
    for disconnect in connected:
        disconnect()


@pytest.fixture
def saves(listen):
    """The `created` flag and the stored row at the time of each `post_save` of an agent."""
    received = []

    def read_row(instance, created, **kwargs):
        in_hand = (instance.name, instance.owner_id, instance.revision)
        row = Agent.objects.values_list(*STORED).get(pk=instance.pk)
        assert in_hand == (row[0], row[1], row[4])
        received.append((created, *row))

    listen(read_row)
    return received


@pytest.fixture
def agent(saves):
    agent = AgentFactory(id="a", name="Concierge", owner_id="bar")
    saves.clear()
    return agent


def test_creating_an_agent_sends_post_save(saves):
    AgentFactory(id="a", name="Concierge", owner_id="bar")

    assert saves == [(True, "Concierge", "bar", 1, 1, 1)]


def test_saving_an_agent_sends_post_save(agent, saves):
    agent.name = "Porter"
    agent.save()

    assert saves == [(False, "Porter", "bar", 2, 2, 2)]


def test_saving_a_database_expression_sends_post_save(agent, saves):
    agent.name = Concat(F("name"), Value(" at night"))
    agent.save()

    assert saves == [(False, "Concierge at night", "bar", 2, 2, 2)]


def test_saving_without_a_change_sends_post_save(agent, saves):
    agent.save()

    assert saves == [(False, "Concierge", "bar", 1, 1, 1)]


def test_changing_the_owner_sends_post_save(agent, saves):
    agent.name, agent.owner_id = "Porter", "kitchen"
    agent.save()

    assert [row[:-1] for row in saves] == [(False, "Porter", "kitchen", 2, 2)]


def test_saving_a_draft_sends_post_save(agent, saves):
    with change(publish=False):
        agent.edit({"name": "Porter"})
        agent.name = "Butler"
        agent.save()

    assert saves == [(False, "Porter", "bar", 2, 1, 2), (False, "Butler", "bar", 3, 1, 3)]


def test_editing_an_agent_sends_post_save(agent, saves):
    agent.edit({"name": "Porter"})

    assert saves == [(False, "Porter", "bar", 2, 2, 2)]


def test_patching_an_agent_sends_post_save(agent, saves):
    Caller(api_key(member("publisher", "bar"))).patch(agent_path("a"), {"name": "Porter"})

    assert saves == [(False, "Porter", "bar", 2, 2, 2)]


def test_saving_the_editor_sends_post_save(agent, saves):
    publisher = browser(member("publisher", "bar"))

    publisher.post(reverse("agents:edit", args=["a"]), editor_form(agent, name="Porter", publish="yes"))

    assert saves == [(False, "Porter", "bar", 2, 2, 2)]


def test_saving_in_the_admin_sends_post_save(agent, saves):
    staff = browser(UserFactory(is_staff=True, is_superuser=True))

    staff.post(reverse("admin:agents_app_agent_change", args=["a"]), admin_form(agent, name="Porter"))

    assert saves == [(False, "Porter", "bar", 2, 2, 2)]


def test_importing_an_agent_sends_post_save(agent, saves):
    live = {**agent.active_version.snapshot, "name": "Porter"}
    record = Record("a", {"id": "a", "agent": live})

    import_record(record, UserFactory(is_superuser=True), {"publish": True})

    assert saves == [(False, "Porter", "bar", 2, 2, 2)]


@pytest.mark.parametrize("sender", [AgentVersion, Activation])
def test_restoring_and_activating_send_post_save(agent, listen, sender):
    agent.edit({"name": "Porter"})
    first, rows = agent.versions.last(), []
    listen(lambda **kwargs: rows.append(Agent.objects.values_list(*STORED).get(pk="a")), sender)

    first.restore()
    assert rows == [("Concierge", "bar", 3, 3, 3)]

    if sender is Activation:
        agent.versions.get(version_number=2).activate()
        assert rows[1:] == [("Porter", "bar", 2, 2, 4)]


@pytest.mark.parametrize("save", ["save", "edit", "create"])
def test_a_receiver_that_raises_rolls_back_the_save(agent, listen, save):
    def refuse(**kwargs):
        raise RuntimeError

    agent.name = "Porter"
    acts = {
        "save": agent.save,
        "edit": partial(agent.edit, {"name": "Porter"}),
        "create": partial(AgentFactory, id="b"),
    }
    listen(refuse)

    with pytest.raises(RuntimeError), transaction.atomic():
        acts[save]()

    row = Agent.objects.get()
    assert (row.pk, row.name, row.revision, row.versions.count()) == ("a", "Concierge", 1, 1)


def test_a_change_by_pre_save_is_in_the_version(agent, listen, saves):
    def shout(instance, **kwargs):
        instance.name = instance.name.upper()

    listen(shout, signal=pre_save)

    agent.edit({"name": "Porter"})
    agent.name = "Butler"
    agent.save()

    assert [row[1] for row in saves] == ["PORTER", "BUTLER"]
    assert [version.snapshot["name"] for version in agent.versions.all()] == ["BUTLER", "PORTER", "Concierge"]


def test_a_change_that_pre_save_makes_in_another_field_is_written(agent, listen):
    def describe(instance, **kwargs):
        instance.description = f"Named {instance.name}"

    listen(describe, signal=pre_save)

    agent.edit({"name": "Porter"})

    row = Agent.objects.get()
    assert (row.description, row.active_version.snapshot["description"]) == ("Named Porter", "Named Porter")
