"""Every row of the table "live, head, draft" of the house, through `save()` and the verbs of a version."""

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
    """Live and head are version 3 of 3."""
    agent = AgentFactory(description="1")
    for description in ("2", "3"):
        save(agent, description=description)
    return agent


@pytest.fixture
def drafted(agent):
    """Live is version 3, a draft is ahead in version 4."""
    with change(publish=False):
        save(agent, description="draft")
    return agent


def save(agent, **fields):
    for name, value in fields.items():
        setattr(agent, name, value)
    agent.save()


def version(agent, number):
    return agent.versions.get(version_number=number)


def stands(agent):
    """The numbers of head, live and the newest version, once the row was found to be the head's picture."""
    row = Agent.objects.with_versions().get(pk=agent.pk)
    assert sha256_hex(row.snapshot_text) == row.head_version.snapshot_hash
    newest = row.versions.first().version_number
    return row.head_version.version_number, row.active_version.version_number, newest


def live(agent):
    return Agent.objects.get(pk=agent.pk).resolved()


# --- Create and save


@pytest.mark.parametrize("publish", [None, True, False])
def test_creating_goes_live(publish):
    with change(publish=publish):
        agent = AgentFactory()

    assert stands(agent) == (1, 1, 1)


@pytest.mark.parametrize("publish", [None, True])
def test_a_save_goes_live_where_no_draft_is_ahead(agent, publish):
    with change(publish=publish):
        save(agent, name="Porter")

    assert stands(agent) == (4, 4, 4)
    assert version(agent, 4).based_on == 3


def test_a_save_that_is_not_to_be_published_becomes_a_draft(agent):
    with change(publish=False):
        save(agent, name="Porter")

    assert stands(agent) == (4, 3, 4)
    assert agent.has_draft
    assert live(agent)["name"] == "Concierge"


@pytest.mark.parametrize("publish", [None, False])
def test_a_save_while_a_draft_is_ahead_stays_a_draft(drafted, publish):
    with change(publish=publish):
        save(drafted, name="Porter")

    assert stands(drafted) == (5, 3, 5)
    assert version(drafted, 5).based_on == 4
    assert version(drafted, 5).changed_fields == ["name"]


def test_a_publishing_save_while_a_draft_is_ahead_releases_both(drafted):
    with change(publish=True):
        save(drafted, name="Porter")

    assert stands(drafted) == (5, 5, 5)
    assert (live(drafted)["name"], live(drafted)["description"]) == ("Porter", "draft")


def test_a_draft_saved_back_to_what_is_live_is_no_draft(drafted):
    save(drafted, description="3")

    assert stands(drafted) == (5, 3, 5)
    assert not Agent.objects.get(pk=drafted.pk).has_draft


def test_after_a_draft_was_saved_back_the_next_save_goes_live(drafted):
    save(drafted, description="3")

    save(drafted, name="Porter")

    assert stands(drafted) == (6, 6, 6)


# --- Publish an unchanged head


def test_publishing_an_unchanged_draft_by_saving_it_makes_it_live(drafted):
    with change(publish=True):
        save(drafted)

    assert stands(drafted) == (4, 4, 4)
    assert drafted.activations.first().to_version_number == 4


def test_publishing_an_unchanged_draft_by_activating_it_makes_it_live(drafted):
    assert version(drafted, 4).activate()

    assert stands(drafted) == (4, 4, 4)


def test_publishing_what_is_live_already_writes_nothing(agent):
    before = Agent.objects.filter(pk=agent.pk).values().get()

    with change(publish=True):
        save(agent)

    assert Agent.objects.filter(pk=agent.pk).values().get() == before
    assert agent.activations.count() == 3


# --- A publishing edit while a draft is ahead


def test_a_publishing_edit_leaves_the_draft_ahead_alone(drafted):
    with change(publish=True):
        made = drafted.edit({"name": "Porter"})

    assert stands(drafted) == (4, 5, 5)
    assert (made.version_number, made.based_on, made.changed_fields) == (5, 3, ["name"])
    assert (live(drafted)["name"], live(drafted)["description"]) == ("Porter", "3")
    assert (drafted.name, drafted.description) == ("Concierge", "draft")


def test_a_publishing_edit_equal_to_live_writes_nothing_though_the_draft_differs(drafted):
    before = Agent.objects.filter(pk=drafted.pk).values().get()

    with change(publish=True):
        assert drafted.edit({"description": "3"}) is None

    assert Agent.objects.filter(pk=drafted.pk).values().get() == before


def test_a_publishing_edit_while_a_draft_is_ahead_is_checked(drafted):
    with pytest.raises(ValidationError, match="blank"), change(publish=True):
        drafted.edit({"name": " "})

    assert stands(drafted) == (4, 3, 4)


def test_an_edit_equal_to_the_draft_it_starts_from_writes_nothing(drafted):
    with change(publish=False):
        assert drafted.edit({"description": "draft"}) is None

    assert stands(drafted) == (4, 3, 4)


# --- Activate


def test_activating_without_a_draft_takes_the_head_along(agent):
    assert version(agent, 1).activate()

    assert stands(agent) == (1, 1, 3)
    assert Agent.objects.get(pk=agent.pk).description == "1"


def test_activating_with_a_draft_ahead_leaves_the_draft(drafted):
    assert version(drafted, 1).activate()

    assert stands(drafted) == (4, 1, 4)
    assert Agent.objects.get(pk=drafted.pk).description == "draft"


def test_activating_the_live_version_again_moves_nothing(drafted):
    before = Agent.objects.filter(pk=drafted.pk).values().get()

    assert not version(drafted, 3).activate()

    assert Agent.objects.filter(pk=drafted.pk).values().get() == before


def test_a_stale_copy_saved_by_name_after_a_roll_back_keeps_the_roll_back(agent):
    stale = Agent.objects.get(pk=agent.pk)
    version(agent, 1).activate()

    stale.name = "Porter"
    stale.save(update_fields=["name"])

    assert (live(agent)["description"], live(agent)["name"]) == ("1", "Porter")


# --- Restore


@pytest.mark.parametrize("publish", [None, True])
def test_restoring_makes_a_new_live_version_with_the_same_picture(agent, publish):
    with change(publish=publish):
        restored = version(agent, 1).restore()

    assert stands(agent) == (4, 4, 4)
    assert restored.snapshot_text == version(agent, 1).snapshot_text
    assert (restored.change_message, restored.source) == ("Restored from version 1", "restore")
    assert restored.based_on == 3


def test_restoring_with_a_draft_ahead_keeps_the_draft_in_the_history(drafted):
    version(drafted, 1).restore()

    assert stands(drafted) == (5, 5, 5)
    assert version(drafted, 5).based_on == 4
    assert version(drafted, 4).snapshot["description"] == "draft"


def test_restoring_as_a_draft_leaves_live_alone(agent):
    with change(publish=False):
        version(agent, 1).restore()

    assert stands(agent) == (4, 3, 4)


def test_restoring_the_live_version_makes_a_version_too(agent):
    restored = version(agent, 3).restore()

    assert stands(agent) == (4, 4, 4)
    assert restored.changed_fields == []


def test_restoring_a_named_version_says_its_name(agent):
    version(agent, 2).update_description(name="Summer menu")

    assert version(agent, 2).restore().change_message == "Restored from version 2 (Summer menu)"


# --- A snapshot by hand


def test_a_snapshot_by_hand_equals_the_head_and_stays_behind_live(drafted):
    with change(name="Before the fair", message="For safety"):
        made = AgentVersion.objects.snapshot(drafted, pinned=True)

    assert stands(drafted) == (5, 3, 5)
    assert made.snapshot_text == version(drafted, 4).snapshot_text
    assert (made.name, made.change_message, made.pinned) == ("Before the fair", "For safety", True)
    assert (made.based_on, made.changed_fields) == (4, [])


def test_a_snapshot_by_hand_of_what_is_live_is_no_draft(agent):
    AgentVersion.objects.snapshot(agent)

    save(agent, name="Porter")

    assert stands(agent) == (5, 5, 5)


# --- Discard and delete


def test_discarding_the_draft_returns_the_head_to_live(drafted):
    assert AgentVersion.objects.discard_draft(drafted)

    assert stands(drafted) == (3, 3, 4)
    assert drafted.description == Agent.objects.get(pk=drafted.pk).description == "3"


def test_there_is_nothing_to_discard_where_no_draft_is_ahead(agent):
    AgentVersion.objects.snapshot(agent)
    before = Agent.objects.filter(pk=agent.pk).values().get()

    assert not AgentVersion.objects.discard_draft(agent)

    assert Agent.objects.filter(pk=agent.pk).values().get() == before


def test_deleting_the_head_returns_it_to_live(drafted):
    version(drafted, 4).remove()

    assert stands(drafted) == (3, 3, 3)
    assert Agent.objects.get(pk=drafted.pk).description == "3"


def test_deleting_another_version_moves_nothing(drafted):
    version(drafted, 2).remove()

    assert stands(drafted) == (4, 3, 4)


def test_the_live_version_cannot_be_deleted(drafted):
    with pytest.raises(ValidationError, match="Cannot delete the active version"):
        version(drafted, 3).remove()

    assert stands(drafted) == (4, 3, 4)


@pytest.mark.parametrize("number", [3, 4])
def test_the_orm_deletes_neither_live_nor_head_either(drafted, number):
    with pytest.raises(RestrictedError):
        version(drafted, number).delete()
    with pytest.raises(RestrictedError):
        drafted.versions.all().delete()

    assert stands(drafted) == (4, 3, 4)


def test_a_version_deleted_by_somebody_else_is_not_described(agent):
    gone = version(agent, 1)
    version(agent, 1).remove()

    with pytest.raises(AgentVersion.DoesNotExist):
        gone.update_description(pinned=True)


def test_a_version_deleted_by_somebody_else_can_be_neither_activated_nor_restored(agent):
    gone = version(agent, 1)
    version(agent, 1).remove()

    for act in (gone.activate, gone.restore, gone.remove):
        with pytest.raises(AgentVersion.DoesNotExist):
            act()
