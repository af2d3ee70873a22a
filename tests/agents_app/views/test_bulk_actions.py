"""Actions on selected agents and on one agent."""

import pytest
from django.db import OperationalError, connection
from django.urls import reverse
from psycopg.errors import LockNotAvailable

from access_app.role import Role
from agents_app.editing import bulk
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, UserFactory, member
from tests.form_submission import form_data
from tests.page_client import browser
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db

SELECTED = reverse("agents:selected")


def test_duplicates_begin_with_the_live_version(editor, agent):
    for _ in range(2):
        answer = editor.post(SELECTED, {"act": "duplicate", "agent": [agent.pk]})

    assert [result.sentence for result in answer.context["results"]] == [f"Duplicated as {agent.pk}-copy-2."]
    assert Agent.objects.get(pk=f"{agent.pk}-copy").name == "Concierge"


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (SELECTED, {"act": "delete", "sure": "yes"}),
        (reverse("agents:restore_selected"), {}),
        (reverse("exchange:export"), {"selected": "yes"}),
    ],
)
def test_an_action_without_a_selection_says_so(publisher, agent, path, fields):
    page = publisher.post(path, fields, follow=True).content.decode()

    assert "Select at least one agent." in page


def test_each_row_has_its_result():
    person = member(Role.PUBLISHER, "support")
    MembershipFactory(user=person, owner_id="newsroom", role=Role.VIEWER)
    mine, theirs, hidden = AgentFactory(owner_id="support"), AgentFactory(owner_id="newsroom"), AgentFactory()
    sent = {"act": "delete", "sure": "yes", "typed": "delete 1 agent", "agent": [mine.pk, theirs.pk, hidden.pk]}

    answer = browser(person).post(SELECTED, sent)

    assert [(result.done, result.sentence) for result in answer.context["results"]] == [
        (True, "Moved to the trash."),
        (False, "This needs the Publisher role in newsroom."),
        (False, "It is no longer there."),
    ]
    assert set(Agent.objects.values_list("pk", flat=True)) == {theirs.pk, hidden.pk}


def test_a_configuration_that_is_not_valid_any_longer_does_not_stop_the_others(editor):
    first, old, last = AgentFactory(id="first"), AgentFactory(id="old"), AgentFactory(id="last")
    Agent.objects.filter(pk=old.pk).update_unguarded(mcp_clients={"office": {"command": "run"}})
    AgentVersion.objects.record(old)

    answer = editor.post(SELECTED, {"act": "duplicate", "agent": [first.pk, old.pk, last.pk]})

    assert [(result.done, result.sentence) for result in answer.context["results"]] == [
        (True, "Duplicated as first-copy."),
        (
            False,
            "Its configuration is not valid: office: Commands are not taken from an agent. "
            "Name a server that a manager added.",
        ),
        (True, "Duplicated as last-copy."),
    ]


def test_an_agent_that_is_locked_for_too_long_is_left_out(editor, monkeypatch):
    agents = [AgentFactory(id=agent_id) for agent_id in ("first", "locked", "last")]
    duplicate = bulk.duplicate_agent

    def wait_too_long(user, agent):
        if agent.pk == "locked":
            raise OperationalError("canceling statement due to lock timeout") from LockNotAvailable()
        return duplicate(user, agent)

    monkeypatch.setattr(bulk, "duplicate_agent", wait_too_long)

    answer = editor.post(SELECTED, {"act": "duplicate", "agent": [agent.pk for agent in agents]})

    results = [(result.done, result.sentence) for result in answer.context["results"]]
    assert results[:2] == [(True, "Duplicated as first-copy."), (False, bulk.BUSY_MESSAGE)]
    # SQLite has one lock for all rows.
    assert results[2][0] is (connection.vendor == "postgresql")


def test_a_database_that_is_away_ends_an_action(agent):
    def lose_database(user, agent):
        raise OperationalError("the connection is closed")

    with pytest.raises(OperationalError, match="closed"):
        bulk.apply_to_each(Agent.objects.all(), member(Role.EDITOR), [agent.pk], lose_database)


def test_archiving_can_be_undone_on_the_page_of_its_results(publisher, agent):
    other = AgentFactory()
    Agent.objects.filter(pk=other.pk).update(archived_at="2026-01-01T00:00:00Z")
    answer = publisher.post(SELECTED, {"act": "archive", "sure": "yes", "agent": [agent.pk, other.pk]})

    undo = form_data(answer.content.decode())
    assert undo.getlist("agent") == [agent.pk]
    publisher.post(SELECTED, undo)
    assert Agent.objects.get(pk=agent.pk).archived_at is None


def test_deleting_can_be_undone_on_the_page_of_its_results(publisher, agent):
    AgentFactory(id=agent.pk + "-2").delete()  # by somebody else
    parent = AgentFactory(agents=[agent.pk])
    sent = {"act": "delete", "sure": "yes", "typed": "delete 2 agents", "agent": [agent.pk, parent.pk]}
    answer = publisher.post(SELECTED, sent)

    assert set(Agent.objects.values_list("pk", flat=True)) == set()
    undo = form_data(answer.content.decode()).getlist("deleted")
    restored = publisher.post(reverse("agents:restore_selected"), {"deleted": undo})
    assert [result.sentence for result in restored.context["results"]] == ["Restored with all versions."] * 2
    assert set(Agent.objects.values_list("pk", flat=True)) == {agent.pk, parent.pk}


def test_deleting_needs_a_confirmation(publisher, agent):
    answer = publisher.post(SELECTED, {"act": "delete", "agent": [agent.pk], "back": "q=x"})

    assert "Delete 1 agent?" in answer.content.decode()
    assert Agent.objects.filter(pk=agent.pk).exists()


def test_agents_that_were_deleted_since_they_were_selected_are_named_before_an_action(publisher, agent):
    page = publisher.post(SELECTED, {"act": "archive", "agent": [agent.pk, "gone"]}).content.decode()

    assert "Archive 1 agent?" in page
    assert "Left out, because it is no longer there: <code>gone</code>." in page


def test_deleting_one_agent_needs_its_name(publisher, agent):
    address = reverse("agents:delete", args=[agent.pk])

    assert publisher.post(address, {"typed": "concierge"}).status_code == 422
    assert publisher.post(address, {"typed": "Concierge"}).url == "/"
    assert not Agent.objects.filter(pk=agent.pk).exists()


def test_the_delete_page_names_dependents(publisher, agent):
    AgentFactory(name="Front desk", agents=[agent.pk])

    assert "Front desk" in publisher.get(reverse("agents:delete", args=[agent.pk])).content.decode()


@pytest.mark.parametrize("name", ["delete", "change_owner"])
def test_an_editor_can_neither_delete_nor_change_the_owner(editor, agent, name):
    address = reverse(f"agents:{name}", args=[agent.pk])

    assert "needs the Publisher role" in editor.get(address).content.decode()
    assert editor.post(address, {"typed": "Concierge", "owner_id": ""}).status_code == 403
    assert Agent.objects.filter(pk=agent.pk).exists()


def test_changing_the_owner_needs_the_role_for_both_owners(agent):
    person = member(Role.PUBLISHER)
    MembershipFactory(user=person, owner_id="support", role=Role.PUBLISHER)
    MembershipFactory(user=person, owner_id="newsroom", role=Role.EDITOR)
    client, address = browser(person), reverse("agents:change_owner", args=[agent.pk])

    refused = client.post(address, {"owner_id": "newsroom"})
    assert refused.status_code == 422
    assert "You need the Publisher role in the new team. Choose another one." in refused.content.decode()
    assert client.post(address, {"owner_id": "support"}).status_code == 302
    agent.refresh_from_db()
    assert agent.owner_id == "support"
    assert agent.versions.count() == 1


def test_presence_names_other_editors_and_newer_versions(publisher, editor, agent):
    address = reverse("agents:presence", args=[agent.pk])
    editor.post(address)

    html = publisher.post(address, {"head": "another"}).content.decode()

    assert "Also viewing" in html
    assert "v1 was saved in the meantime" in html


def test_presence_compares_with_the_version_that_is_open(publisher, agent):
    address, opened = reverse("agents:presence", args=[agent.pk]), agent.head_version
    for text in ("One.", "Two."):
        agent.edit({"instructions": text})

    html = publisher.post(address, {"head": opened.pk}).content.decode()
    opened.remove()
    without = publisher.post(address, {"head": opened.pk}).content.decode()

    assert "v3 was saved in the meantime" in html
    assert "compare?from=1&amp;to=head" in html
    assert "compare?" not in without


def test_presence_does_not_say_that_an_older_version_was_saved(publisher, agent):
    with change(publish=False):
        draft = agent.edit({"instructions": "A draft."})
    agent.versions.discard_draft(agent)

    html = publisher.post(reverse("agents:presence", args=[agent.pk]), {"head": draft.pk}).content.decode()

    assert "Editing continues from v1 now." in html
    assert "was saved" not in html


# --- Strangers


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_the_owner_of_an_agent_that_is_not_valid_any_longer_is_not_changed(agent, headers):
    Agent.objects.filter(pk=agent.pk).update_unguarded(tools=["calculator", "calculator"])
    client = browser(UserFactory(is_superuser=True))

    answer = client.post(reverse("agents:change_owner", args=[agent.pk]), {"owner_id": "support"}, headers=headers)

    assert answer.status_code == 422
    assert "&#x27;calculator&#x27; is listed twice" in answer.content.decode()
    assert Agent.objects.get().owner_id == ""


@pytest.mark.parametrize("name", ["edit", "delete", "change_owner", "presence"])
def test_an_agent_of_another_owner_is_not_found(name):
    agent = AgentFactory(owner_id="newsroom", name="Secret")
    stranger = browser(member(Role.MANAGER, "elsewhere"))

    answers = [call(reverse(f"agents:{name}", args=[agent.pk])) for call in (stranger.get, stranger.post)]

    assert {answer.status_code for answer in answers} <= {404, 405}
    assert "Secret" not in "".join(answer.content.decode() for answer in answers)


@pytest.mark.parametrize("name", ["list", "create"])
def test_an_anonymous_user_is_redirected_to_sign_in(client, name):
    assert client.get(reverse(f"agents:{name}")).url.startswith("/sign-in?next=")


def test_an_agent_is_created_only_for_allowed_owners(agent):
    client = browser(member(Role.EDITOR, "support"))
    sent = {"name": "New", "provider": "demo", "model_name": "echo", "instructions": ""}

    assert client.post(reverse("agents:create"), {**sent, "owner_id": "newsroom"}).status_code == 422
    assert client.post(reverse("agents:create"), {**sent, "owner_id": "support"}).url == "/agents/new"
    assert Agent.objects.get(pk="new").versions.get().change_message == "Created"


def test_a_taken_id_is_an_error_at_its_field(editor):
    theirs = AgentFactory(owner_id="newsroom")
    sent = {"id": theirs.pk, "owner_id": "", "name": "New", "provider": "demo", "model_name": "echo"}

    answer = editor.post(reverse("agents:create"), sent)

    assert answer.status_code == 422
    assert "is already taken" in str(answer.context["form"].errors["id"])


def test_a_viewer_can_only_read(viewer, agent):
    html = viewer.get(reverse("agents:edit", args=[agent.pk])).content.decode()

    assert "You can view this agent." in html
    assert "Save draft" not in html
    assert viewer.get(reverse("agents:create")).status_code == 403
