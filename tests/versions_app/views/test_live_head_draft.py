"""Live, head and draft after actions of history pages."""

import pytest

from tests.history_pages import act, agent_state, edit, messages, page, version

pytestmark = pytest.mark.django_db


def test_activating_without_a_draft_moves_the_head(publisher, story):
    response = act(publisher, "activate", story, 1)

    assert agent_state(story) == (1, 1, [1, 2, 3])
    assert messages(response) == ["v1 is live."]


def test_activating_keeps_the_draft(publisher, drafted):
    act(publisher, "activate", drafted, 1)

    assert agent_state(drafted) == (1, 4, [1, 2, 3, 4])


def test_activating_the_draft_publishes_it(publisher, drafted):
    act(publisher, "activate", drafted, 4)

    assert agent_state(drafted) == (4, 4, [1, 2, 3, 4])


def test_activating_the_live_version_changes_nothing(publisher, story):
    response = act(publisher, "activate", story, 3)

    assert agent_state(story) == (3, 3, [1, 2, 3])
    assert story.activations.count() == 3
    assert messages(response) == ["v3 is already live."]


def test_restore_creates_a_new_live_version(publisher, story):
    response = act(publisher, "restore", story, 1, publish="yes")

    assert agent_state(story) == (4, 4, [1, 2, 3, 4])
    assert version(story, 4).snapshot == version(story, 1).snapshot
    assert version(story, 4).change_message == "Restored from version 1"
    assert messages(response) == ["v4 is live, restored from v1."]


def test_restore_as_a_draft_keeps_the_live_version(editor, story):
    response = act(editor, "restore", story, 1, publish="no")

    assert agent_state(story) == (3, 4, [1, 2, 3, 4])
    assert messages(response) == ["v4 is the draft, restored from v1."]


@pytest.mark.parametrize("agent_fixture", ["story", "drafted"])
def test_undo_of_restoring_as_a_draft_returns_the_head(request, editor, agent_fixture):
    agent = request.getfixturevalue(agent_fixture)
    before = agent_state(agent)
    response = act(editor, "restore", agent, 1, publish="no")
    (message,) = response.wsgi_request._messages

    again = editor.post(message.extra_tags)

    restored = before.head + 1
    assert agent_state(agent) == (before.live, before.head, [*before.versions, restored])
    state = "v4 is the draft again" if agent_fixture == "drafted" else "There is no draft now"
    assert messages(again)[-1] == f"{state}. v{restored} stays in the history."


def test_a_restored_draft_that_was_saved_again_is_not_taken_back(editor, story):
    act(editor, "restore", story, 1, publish="no")
    edit(story, publish=False, name="Porter")

    response = act(editor, "take_back", story, 4)

    assert agent_state(story) == (3, 5, [1, 2, 3, 4, 5])
    assert messages(response)[-1] == "v4 is no longer the draft. Nothing was changed."


def test_a_restored_draft_that_was_published_is_not_taken_back(editor, publisher, story):
    act(editor, "restore", story, 1, publish="no")
    act(publisher, "activate", story, 4)

    response = act(editor, "take_back", story, 4)

    assert agent_state(story) == (4, 4, [1, 2, 3, 4])
    assert messages(response)[-1] == "v4 is no longer the draft. Nothing was changed."


def test_a_restored_draft_is_not_taken_back_to_a_deleted_version(editor, drafted):
    act(editor, "restore", drafted, 1, publish="no")
    version(drafted, 4).remove()

    response = act(editor, "take_back", drafted, 5)

    assert agent_state(drafted) == (3, 5, [1, 2, 3, 5])
    assert messages(response)[-1] == "v4 was deleted. Discard the draft to return to live."


def test_a_draft_that_nobody_restored_is_not_taken_back(editor, drafted):
    act(editor, "take_back", drafted, 4)

    assert agent_state(drafted) == (3, 4, [1, 2, 3, 4])


def test_restore_keeps_a_draft_in_the_history(publisher, drafted):
    act(publisher, "restore", drafted, 1, publish="yes")

    assert agent_state(drafted) == (5, 5, [1, 2, 3, 4, 5])
    assert version(drafted, 5).based_on == 4


def test_a_manual_snapshot_is_the_head_and_not_published(editor, story):
    act(editor, "snapshot", story, name="Before the fair", change_message="All agreed", pinned="on")

    assert agent_state(story) == (3, 4, [1, 2, 3, 4])
    made = version(story, 4)
    assert (made.name, made.change_message, made.pinned) == ("Before the fair", "All agreed", True)
    assert made.snapshot == version(story, 3).snapshot


def test_discarding_the_draft_moves_the_head_to_live(editor, drafted):
    response = act(editor, "discard_draft", drafted)

    assert agent_state(drafted) == (3, 3, [1, 2, 3, 4])
    assert messages(response) == ["Draft v4 discarded."]


def test_undo_restores_a_discarded_draft(editor, drafted):
    response = act(editor, "discard_draft", drafted)
    (message,) = response.wsgi_request._messages

    editor.post(message.extra_tags)

    assert agent_state(drafted) == (3, 5, [1, 2, 3, 4, 5])
    assert version(drafted, 5).snapshot == version(drafted, 4).snapshot


def test_undo_of_discarding_does_not_replace_a_newer_draft(editor, drafted):
    act(editor, "discard_draft", drafted)
    edit(drafted, publish=False, name="Porter")

    response = act(editor, "bring_back", drafted, 4)

    assert agent_state(drafted) == (3, 5, [1, 2, 3, 4, 5])
    assert "There is already another draft. v4 remains in the history." in messages(response)


def test_discarding_without_a_draft_changes_nothing(editor, story):
    response = act(editor, "discard_draft", story)

    assert agent_state(story) == (3, 3, [1, 2, 3])
    assert messages(response) == ["There is no draft to discard."]


def test_deleting_the_head_version_moves_the_head_to_live(publisher, drafted):
    act(publisher, "delete", drafted, 4)

    assert agent_state(drafted) == (3, 3, [1, 2, 3])


def test_deleting_an_old_version_moves_no_pointer(publisher, drafted):
    act(publisher, "delete", drafted, 2)

    assert agent_state(drafted) == (3, 4, [1, 3, 4])


def test_the_live_version_cannot_be_deleted(publisher, story):
    response = act(publisher, "delete", story, 3)

    assert response.status_code == 409
    assert "Cannot delete the active version" in response.content.decode()
    assert agent_state(story) == (3, 3, [1, 2, 3])


def test_undo_publishes_the_previous_live_version(publisher, story):
    response = act(publisher, "activate", story, 1)
    (message,) = response.wsgi_request._messages

    offered = page(publisher, "live_history", story).content.decode()
    again = publisher.post(message.extra_tags)

    assert "Publish v3 again</button>" in offered  # no roll-back: v3 is newer
    assert agent_state(story) == (3, 3, [1, 2, 3])
    assert messages(again)[-1] == "v3 is live again."
    assert "Roll back to v1</button>" in page(publisher, "live_history", story).content.decode()
    assert story.activations.first().reason == "v3 is live again"


def test_undo_of_publishing_a_draft_says_where_the_draft_is(publisher, drafted):
    response = act(publisher, "activate", drafted, 4)
    (message,) = response.wsgi_request._messages

    again = publisher.post(message.extra_tags)

    assert agent_state(drafted) == (3, 3, [1, 2, 3, 4])
    assert messages(again)[-1] == "Rolled back to v3. v4 stays in the history."
