"""Confirmations of publishing and other actions."""

import json

import pytest
from django.db import transaction
from django.db.models.signals import post_save
from django.urls import reverse

from access_app.role import Role
from tests.factories import AgentFactory, member
from tests.history_pages import act, agent_state, edit, messages, page, version
from tests.page_client import browser
from versions_app.models import Activation

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def test_the_confirmation_shows_both_versions_and_dependents(publisher, story):
    AgentFactory(name="Night shift", agents=[story.pk])
    AgentFactory(name="Secret", owner_id="elsewhere", agents=[story.pk])

    text = page(publisher, "activate", story, 1).content.decode()

    assert "Publish v1 (replaces v3)" in text
    assert "Tools" in text
    assert "−search" in text
    assert "Night shift" in text
    assert "1 agent that you may not see" in text
    assert "Secret" not in text


def test_htmx_gets_a_dialog_and_a_browser_gets_a_page(publisher, story):
    dialog = publisher.get(reverse("versions:activate", args=[story.pk, 1]), headers=HTMX)
    whole = page(publisher, "activate", story, 1)

    assert dialog.content.strip().startswith(b"<dialog")
    assert b"<main" in whole.content
    assert b'<dialog class="dialog "' not in whole.content
    assert "HX-Request" in dialog.headers["Vary"]


def test_only_deleting_has_a_red_button(publisher, story):
    text = page(publisher, "restore", story, 1).content.decode()

    assert text.count("button-release") == 1
    assert "Restore and publish (replaces v3)" in text
    assert "Restore as draft" in text


def test_htmx_actions_send_events_with_an_undo(publisher, story):
    sent = {"live": 3, "head": 3}
    response = publisher.post(reverse("versions:activate", args=[story.pk, 1]), sent, headers=HTMX)

    events = json.loads(response.headers["HX-Trigger"])
    undo = reverse("versions:undo", args=[story.pk, story.activations.first().pk])
    assert response.status_code == 204
    assert events["history-changed"] == {"target": "body", "message": "v1 is live.", "undo": undo}
    assert "version-activated" in events


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["activate", "restore", "undo"])
def test_an_action_offers_no_undo_of_what_others_publish_meanwhile(publisher, story, name):
    act(publisher, "activate", story, 2)
    number = story.activations.first().pk if name == "undo" else 1
    sent = {"live": 2, "head": 2, "publish": "yes"}
    publish_after_commit(story, 2 if name != "undo" else 1)

    response = publisher.post(reverse(f"versions:{name}", args=[story.pk, number]), sent, headers=HTMX)

    theirs, own = story.activations.all()[:2]
    events = json.loads(response.headers["HX-Trigger"])
    assert events["history-changed"]["undo"] == reverse("versions:undo", args=[story.pk, own.pk])
    assert agent_state(story).live == theirs.to_version_number


def publish_after_commit(agent, number):
    """Let somebody else publish a version right after the next move of live."""

    def receive(**kwargs):
        post_save.disconnect(receive, Activation)
        transaction.on_commit(lambda: version(agent, number).activate())

    post_save.connect(receive, Activation, weak=False)


def test_an_action_that_keeps_live_sends_no_publish_event(editor, drafted):
    sent = {"live": 3, "head": 4}
    response = editor.post(reverse("versions:discard_draft", args=[drafted.pk]), sent, headers=HTMX)

    assert list(json.loads(response.headers["HX-Trigger"])) == ["history-changed"]


def test_the_reason_is_stored_in_the_live_history(publisher, story):
    act(publisher, "activate", story, 1, message="The new tool is down")

    assert story.activations.first().reason == "The new tool is down"
    assert "The new tool is down" in page(publisher, "live_history", story).content.decode()


@pytest.mark.parametrize("name", ["activate", "restore"])
def test_publishing_is_refused_when_the_live_version_changed(publisher, story, name):
    version(story, 2).activate()

    response = publisher.post(
        reverse(f"versions:{name}", args=[story.pk, 1]), {"live": 3, "head": 3, "publish": "yes", "message": "Because"}
    )

    text = response.content.decode()
    assert response.status_code == 409
    assert "changed since you opened this dialog" in text
    assert "(replaces v2)" in text
    assert "Because" in text, "what was typed stays"
    assert agent_state(story) == (2, 2, [1, 2, 3])


def test_a_refused_confirmation_can_be_sent_again(publisher, story):
    version(story, 2).activate()
    refused = publisher.post(reverse("versions:activate", args=[story.pk, 1]), {"live": 3}, headers=HTMX)

    assert refused.status_code == 409
    assert b'name="live" value="2"' in refused.content

    act(publisher, "activate", story, 1)

    assert agent_state(story).live == 1


def test_a_new_draft_does_not_prevent_publishing(publisher, story):
    edit(story, publish=False, name="Doorman")

    publisher.post(reverse("versions:activate", args=[story.pk, 1]), {"live": 3, "head": 3})

    assert agent_state(story).live == 1


def test_restore_is_refused_after_a_newer_save(publisher, story):
    edit(story, publish=False, name="Doorman")

    response = publisher.post(
        reverse("versions:restore", args=[story.pk, 1]), {"live": 3, "head": 3, "publish": "yes"}
    )

    assert response.status_code == 409
    assert agent_state(story) == (3, 4, [1, 2, 3, 4])


def test_a_form_without_the_expected_versions_is_refused(publisher, story):
    response = publisher.post(reverse("versions:activate", args=[story.pk, 1]))

    assert response.status_code == 409
    assert agent_state(story).live == 3


def test_a_too_long_message_is_an_error_at_its_field(publisher, story):
    response = act(publisher, "activate", story, 1, message="x" * 501)

    assert response.status_code == 422
    assert "at most 500 characters" in response.content.decode()
    assert agent_state(story).live == 3


def test_a_late_undo_is_refused_with_a_message(publisher, story):
    first = story.activations.first()
    act(publisher, "activate", story, 1)

    response = publisher.post(reverse("versions:undo", args=[story.pk, first.pk]))

    assert messages(response)[-1].startswith("The live version changed in the meantime.")
    assert agent_state(story).live == 1


def test_editors_see_why_they_cannot_publish(editor, story):
    text = page(editor, "activate", story, 1).content.decode()

    assert "This needs the Publisher role in Shared." in text
    assert 'disabled title="This needs the Publisher role' in text


def test_editors_can_restore_only_as_a_draft(editor, story):
    text = page(editor, "restore", story, 1).content.decode()
    refused = act(editor, "restore", story, 1, publish="yes")

    assert text.count("disabled title=") == 1
    assert refused.status_code == 403
    assert agent_state(story) == (3, 3, [1, 2, 3])


@pytest.mark.parametrize(
    ("role", "name", "more", "needed"),
    [
        (Role.EDITOR, "activate", [1], "publisher"),
        (Role.EDITOR, "delete", [1], "publisher"),
        (Role.VIEWER, "restore", [1], "editor"),
        (Role.VIEWER, "describe", [1], "editor"),
        (Role.VIEWER, "snapshot", [], "editor"),
        (Role.VIEWER, "discard_draft", [], "editor"),
        (Role.VIEWER, "bring_back", [1], "editor"),
        (Role.VIEWER, "take_back", [1], "editor"),
    ],
)
def test_a_missing_role_is_named(drafted, role, name, more, needed):
    response = act(browser(member(role)), name, drafted, *more)

    assert response.status_code == 403
    assert f"This needs the {needed.capitalize()} role in Shared." in response.content.decode()
    assert agent_state(drafted) == (3, 4, [1, 2, 3, 4])


def test_undo_needs_the_publisher_role(editor, story):
    response = editor.post(reverse("versions:undo", args=[story.pk, story.activations.first().pk]))

    assert response.status_code == 403
    assert agent_state(story).live == 3
