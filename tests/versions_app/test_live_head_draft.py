"""Live, head and draft after saves and actions of versions."""

import pytest
from django.core.exceptions import ValidationError
from django.db.models import RestrictedError

from agentcms.wire.canonical import sha256_hex
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    """Return an agent whose live and head are version 3 of 3."""
    agent = AgentFactory(description="1")
    for description in ("2", "3"):
        save(agent, description=description)
    return agent


@pytest.fixture
def drafted(agent):
    """Return an agent with live version 3 and draft version 4."""
    save_draft(agent)
    return agent


def save(agent, **fields):
    for name, value in fields.items():
        setattr(agent, name, value)
    agent.save()


def save_draft(agent):
    with change(publish=False):
        save(agent, description="draft")


def version(agent, number):
    return agent.versions.get(version_number=number)


def pointers_of(agent):
    """Check the row against its head. Return the numbers of head, live and newest version."""
    row = Agent.objects.with_versions().get(pk=agent.pk)
    assert sha256_hex(row.snapshot_text) == row.head_version.snapshot_hash
    newest = row.versions.first().version_number
    return row.head_version.version_number, row.active_version.version_number, newest


def live(agent):
    return Agent.objects.get(pk=agent.pk).resolved()


# --- Create and save


@pytest.mark.parametrize("publish", [None, True, False])
def test_creating_publishes_version_1(publish):
    with change(publish=publish):
        agent = AgentFactory()

    assert pointers_of(agent) == (1, 1, 1)


@pytest.mark.parametrize("publish", [None, True])
def test_a_save_without_a_draft_is_published(agent, publish):
    with change(publish=publish):
        save(agent, name="Porter")

    assert pointers_of(agent) == (4, 4, 4)
    assert version(agent, 4).based_on == 3


def test_a_save_without_publishing_creates_a_draft(agent):
    with change(publish=False):
        save(agent, name="Porter")

    assert pointers_of(agent) == (4, 3, 4)
    assert agent.has_draft
    assert live(agent)["name"] == "Concierge"


@pytest.mark.parametrize("publish", [None, False])
def test_a_save_on_a_draft_stays_a_draft(drafted, publish):
    with change(publish=publish):
        save(drafted, name="Porter")

    assert pointers_of(drafted) == (5, 3, 5)
    assert version(drafted, 5).based_on == 4
    assert version(drafted, 5).changed_fields == ["name"]


def test_a_publishing_save_publishes_the_draft_too(drafted):
    with change(publish=True):
        save(drafted, name="Porter")

    assert pointers_of(drafted) == (5, 5, 5)
    assert (live(drafted)["name"], live(drafted)["description"]) == ("Porter", "draft")


def test_a_draft_saved_back_to_live_is_no_draft(drafted):
    save(drafted, description="3")

    assert pointers_of(drafted) == (5, 3, 5)
    assert not Agent.objects.get(pk=drafted.pk).has_draft


def test_the_save_after_a_draft_was_saved_back_is_published(drafted):
    save(drafted, description="3")

    save(drafted, name="Porter")

    assert pointers_of(drafted) == (6, 6, 6)


# --- Publish an unchanged head


def test_saving_an_unchanged_draft_publishes_it(drafted):
    with change(publish=True):
        save(drafted)

    assert pointers_of(drafted) == (4, 4, 4)
    assert drafted.activations.first().to_version_number == 4


def test_activating_an_unchanged_draft_publishes_it(drafted):
    assert version(drafted, 4).activate()

    assert pointers_of(drafted) == (4, 4, 4)


def test_publishing_the_live_version_writes_nothing(agent):
    before = Agent.objects.filter(pk=agent.pk).values().get()

    with change(publish=True):
        save(agent)

    assert Agent.objects.filter(pk=agent.pk).values().get() == before
    assert agent.activations.count() == 3


# --- A publishing edit while a draft is ahead


def test_a_publishing_edit_keeps_the_draft(drafted):
    with change(publish=True):
        made = drafted.edit({"name": "Porter"})

    assert pointers_of(drafted) == (4, 5, 5)
    assert (made.version_number, made.based_on, made.changed_fields) == (5, 3, ["name"])
    assert (live(drafted)["name"], live(drafted)["description"]) == ("Porter", "3")
    assert (drafted.name, drafted.description) == ("Concierge", "draft")


def test_a_publishing_edit_equal_to_live_writes_nothing(drafted):
    before = Agent.objects.filter(pk=drafted.pk).values().get()

    with change(publish=True):
        assert drafted.edit({"description": "3"}) is None

    assert Agent.objects.filter(pk=drafted.pk).values().get() == before


def test_a_publishing_edit_beside_a_draft_is_validated(drafted):
    with pytest.raises(ValidationError, match="blank"), change(publish=True):
        drafted.edit({"name": " "})

    assert pointers_of(drafted) == (4, 3, 4)


def test_an_edit_equal_to_the_draft_writes_nothing(drafted):
    with change(publish=False):
        assert drafted.edit({"description": "draft"}) is None

    assert pointers_of(drafted) == (4, 3, 4)


# --- Activate


def test_activating_without_a_draft_moves_the_head(agent):
    assert version(agent, 1).activate()

    assert pointers_of(agent) == (1, 1, 3)
    assert Agent.objects.get(pk=agent.pk).description == "1"


def test_activating_keeps_the_draft(drafted):
    assert version(drafted, 1).activate()

    assert pointers_of(drafted) == (4, 1, 4)
    assert Agent.objects.get(pk=drafted.pk).description == "draft"


def test_activating_the_live_version_again_does_nothing(drafted):
    before = Agent.objects.filter(pk=drafted.pk).values().get()

    assert not version(drafted, 3).activate()

    assert Agent.objects.filter(pk=drafted.pk).values().get() == before


def test_saving_one_field_of_a_stale_instance_keeps_a_roll_back(agent):
    stale = Agent.objects.get(pk=agent.pk)
    version(agent, 1).activate()

    stale.name = "Porter"
    stale.save(update_fields=["name"])

    assert (live(agent)["description"], live(agent)["name"]) == ("1", "Porter")


@pytest.mark.parametrize(
    ("act", "description"),
    [
        (lambda agent: version(agent, 1).activate(), "1"),
        (lambda agent: version(agent, 1).restore(), "1"),
        (lambda agent: agent.activations.first().undo(), "2"),
        (lambda agent: (save_draft(agent), version(agent, 4).remove()), "3"),
        (lambda agent: (save_draft(agent), AgentVersion.objects.discard_draft(agent)), "3"),
    ],
    ids=["activate", "restore", "undo", "remove", "discard"],
)
def test_the_next_save_of_the_same_object_keeps_what_an_action_did(agent, act, description):
    act(agent)

    save(agent, name="Porter")

    assert (live(agent)["description"], live(agent)["name"]) == (description, "Porter")


# --- Restore


@pytest.mark.parametrize("publish", [None, True])
def test_restore_creates_a_new_live_version(agent, publish):
    with change(publish=publish):
        restored = version(agent, 1).restore()

    assert pointers_of(agent) == (4, 4, 4)
    assert restored.snapshot_text == version(agent, 1).snapshot_text
    assert (restored.change_message, restored.source) == ("Restored from version 1", "restore")
    assert restored.based_on == 3


def test_restore_keeps_a_draft_in_the_history(drafted):
    version(drafted, 1).restore()

    assert pointers_of(drafted) == (5, 5, 5)
    assert version(drafted, 5).based_on == 4
    assert version(drafted, 4).snapshot["description"] == "draft"


def test_restore_as_a_draft_keeps_the_live_version(agent):
    with change(publish=False):
        version(agent, 1).restore()

    assert pointers_of(agent) == (4, 3, 4)


def test_restoring_the_live_version_creates_a_version(agent):
    restored = version(agent, 3).restore()

    assert pointers_of(agent) == (4, 4, 4)
    assert restored.changed_fields == []


def test_restoring_a_named_version_records_its_name(agent):
    version(agent, 2).update_description(name="Summer menu")

    assert version(agent, 2).restore().change_message == "Restored from version 2 (Summer menu)"


# --- A snapshot by hand


def test_a_manual_snapshot_equals_the_head_and_is_not_published(drafted):
    with change(name="Before the fair", message="For safety"):
        made = AgentVersion.objects.snapshot(drafted, pinned=True)

    assert pointers_of(drafted) == (5, 3, 5)
    assert drafted.head_version == made
    assert made.snapshot_text == version(drafted, 4).snapshot_text
    assert (made.name, made.change_message, made.pinned) == ("Before the fair", "For safety", True)
    assert (made.based_on, made.changed_fields) == (4, [])


def test_a_manual_snapshot_of_the_live_version_is_no_draft(agent):
    AgentVersion.objects.snapshot(agent)

    save(agent, name="Porter")

    assert pointers_of(agent) == (5, 5, 5)


# --- Discard and delete


def test_discarding_the_draft_moves_the_head_to_live(drafted):
    assert AgentVersion.objects.discard_draft(drafted)

    assert pointers_of(drafted) == (3, 3, 4)
    assert drafted.description == Agent.objects.get(pk=drafted.pk).description == "3"


def test_discarding_without_a_draft_is_refused(agent):
    AgentVersion.objects.snapshot(agent)
    before = Agent.objects.filter(pk=agent.pk).values().get()

    assert not AgentVersion.objects.discard_draft(agent)

    assert Agent.objects.filter(pk=agent.pk).values().get() == before


def test_deleting_the_head_version_moves_the_head_to_live(drafted):
    version(drafted, 4).remove()

    assert pointers_of(drafted) == (3, 3, 3)
    assert Agent.objects.get(pk=drafted.pk).description == "3"


def test_deleting_another_version_moves_no_pointer(drafted):
    version(drafted, 2).remove()

    assert pointers_of(drafted) == (4, 3, 4)


def test_the_live_version_cannot_be_deleted(drafted):
    with pytest.raises(ValidationError, match="Cannot delete the active version"):
        version(drafted, 3).remove()

    assert pointers_of(drafted) == (4, 3, 4)


@pytest.mark.parametrize("number", [3, 4])
def test_the_orm_cannot_delete_the_live_or_head_version(drafted, number):
    with pytest.raises(RestrictedError):
        version(drafted, number).delete()
    with pytest.raises(RestrictedError):
        drafted.versions.all().delete()

    assert pointers_of(drafted) == (4, 3, 4)


def test_a_deleted_version_cannot_be_described(agent):
    gone = version(agent, 1)
    version(agent, 1).remove()

    with pytest.raises(AgentVersion.DoesNotExist):
        gone.update_description(pinned=True)


def test_a_deleted_version_cannot_be_activated_or_restored(agent):
    gone = version(agent, 1)
    version(agent, 1).remove()

    for act in (gone.activate, gone.restore, gone.remove):
        with pytest.raises(AgentVersion.DoesNotExist):
            act()
