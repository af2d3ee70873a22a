"""The log of activations."""

import pytest

from agents_app.editing.change_context import change
from tests.factories import AgentFactory
from versions_app.models import AgentVersion, CannotUndo

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    agent = AgentFactory()
    agent.edit({"name": "Porter"})
    return agent


def log(agent):
    """Return pairs of the previous and new version, oldest first."""
    fields = ("from_version_number", "to_version_number")
    return list(agent.activations.order_by("pk").values_list(*fields))


def version(agent, number):
    return agent.versions.get(version_number=number)


def publish_a_draft(agent):
    with change(publish=False):
        agent.edit({"name": "Draft"})
    with change(publish=True):
        agent.save()


def test_creating_and_editing_are_logged(agent):
    assert log(agent) == [(None, 1), (1, 2)]


def test_a_draft_is_not_logged(agent):
    with change(publish=False):
        agent.edit({"name": "Draft"})
    AgentVersion.objects.snapshot(agent)
    AgentVersion.objects.discard_draft(agent)

    assert log(agent) == [(None, 1), (1, 2)]


def test_activating_restoring_and_publishing_edits_are_logged(agent):
    version(agent, 1).activate()
    version(agent, 2).restore()
    with change(publish=False):
        agent.edit({"name": "Draft"})
    with change(publish=True):
        agent.edit({"description": "Amended"})

    assert log(agent)[2:] == [(2, 1), (1, 3), (3, 5)]


def test_activating_the_live_version_is_not_logged(agent):
    version(agent, 2).activate()

    assert log(agent) == [(None, 1), (1, 2)]


def test_the_log_records_version_ids_and_numbers(agent):
    first, second = version(agent, 1), version(agent, 2)

    activation = agent.activations.first()

    assert (activation.from_version_id, activation.to_version_id) == (first.pk, second.pk)


def test_the_log_outlives_its_versions(agent):
    agent.edit({"name": "Butler"})
    version(agent, 1).remove()

    assert log(agent) == [(None, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda agent: agent.edit({"name": "Butler"}), "Saved and published"),
        (publish_a_draft, "Published the draft"),
        (lambda agent: agent.versions.last().activate(), "Published v1"),
        (lambda agent: agent.versions.last().restore(), "Restored from version 1"),
    ],
)
def test_an_activation_records_its_reason(agent, act, reason):
    act(agent)

    assert agent.activations.first().reason == reason


def test_undo_publishes_the_previous_live_version(agent):
    agent.activations.first().undo()

    assert log(agent)[-1] == (2, 1)
    assert agent.activations.first().reason == "Rolled back to v1"


def test_undo_records_the_message_of_its_change(agent):
    with change(message="Wrong name"):
        agent.activations.first().undo()

    assert agent.activations.first().reason == "Wrong name"


def test_undoing_twice_publishes_the_first_version_again(agent):
    agent.activations.first().undo()
    agent.activations.first().undo()

    assert log(agent)[-1] == (1, 2)


def test_only_the_newest_activation_can_be_undone(agent):
    with pytest.raises(CannotUndo, match="changed in the meantime"):
        agent.activations.last().undo()


def test_the_first_activation_cannot_be_undone():
    with pytest.raises(CannotUndo, match="No version was live before"):
        AgentFactory().activations.first().undo()


def test_an_activation_cannot_be_undone_to_a_deleted_version(agent):
    version(agent, 1).remove()

    with pytest.raises(CannotUndo) as refused:
        agent.activations.first().undo()

    assert refused.value.code == "pruned"
