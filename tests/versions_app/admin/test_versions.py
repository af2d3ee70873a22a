"""Versions in Django admin."""

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse

from agents_app.editing.change_context import change
from tests.factories import AgentFactory, UserFactory, archived_agent, member
from tests.form_submission import form_data
from versions_app.admin.version_actions import PIN_HINT
from versions_app.admin.versions import AgentVersionAdmin
from versions_app.models import AgentVersion
from versions_app.models.retention_rule import RetentionRule

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client):
    user = UserFactory(is_staff=True, is_superuser=True)
    client.force_login(user)
    return user


@pytest.fixture
def agent():
    agent = AgentFactory()
    agent.edit({"name": "Porter"})
    return agent


def change_url(version):
    return reverse("admin:versions_app_agentversion_change", args=[version.pk])


def act(client, version, action, **fields):
    """Choose an action and confirm it for the current live version and draft, unless `confirmed` is empty."""
    row = type(version.agent).objects.get(pk=version.agent_id)
    fields = {"confirmed": "yes", "live": str(row.active_version_id), "head": str(row.head_version_id), **fields}
    return client.post(
        reverse("admin:versions_app_agentversion_changelist"),
        {
            "action": action,
            "_selected_action": [version.pk],
            **{name: value for name, value in fields.items() if value},
        },
    )


def test_name_and_pin_of_a_version_can_be_changed_and_nothing_else(client, staff, agent):
    version = agent.versions.get(version_number=1)
    address = change_url(version)

    client.post(
        address, {"name": "First", "pinned": "on", "change_message": "Why", "version_number": 9, "snapshot": "{}"}
    )

    changed = agent.versions.get(version_number=1)
    assert (changed.name, changed.pinned, changed.snapshot_text) == ("First", True, version.snapshot_text)


@pytest.mark.parametrize("text", ["One line.\nAnother one.", "one\rtwo", " spaced "])
def test_pinning_a_version_leaves_its_texts_as_they_are(client, staff, agent, text):
    version = agent.versions.get(version_number=1)
    version.update_description(name=text, change_message=text)
    opened = form_data(client.get(change_url(version)).content.decode())
    opened["pinned"] = "on"

    client.post(change_url(version), opened)

    changed = agent.versions.get(version_number=1)
    assert (changed.name, changed.change_message, changed.pinned) == (text, text, True)


def test_saving_a_deleted_version_does_not_recreate_it(client, staff, agent, monkeypatch):
    version = agent.versions.get(version_number=1)
    real = AgentVersionAdmin.save_model

    def remove_and_save(*arguments):
        agent.versions.get(version_number=1).remove()
        real(*arguments)

    monkeypatch.setattr(AgentVersionAdmin, "save_model", remove_and_save)
    address = reverse("admin:versions_app_agentversion_change", args=[version.pk])

    assert client.post(address, {"name": "First", "change_message": "Why"}).status_code == 404
    assert not AgentVersion.objects.filter(name="First").exists()


def test_an_old_version_is_published_from_the_list(client, staff, agent):
    act(client, agent.versions.get(version_number=1), "publish")

    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.activations.first().author) == (1, staff)


def test_an_old_version_is_restored_from_the_list(client, staff, agent):
    act(client, agent.versions.get(version_number=1), "restore")

    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.active_version.source) == (3, "restore")


def test_an_editor_cannot_publish(client, agent):
    client.force_login(member("editor", is_staff=True))

    act(client, agent.versions.get(version_number=1), "publish")

    agent.refresh_from_db()
    assert agent.active_version.version_number == 2


def test_versions_cannot_be_added_or_deleted(client, staff, agent):
    version = agent.versions.get(version_number=1)

    deletion = client.post(reverse("admin:versions_app_agentversion_delete", args=[version.pk]), {"post": "yes"})
    addition = client.get(reverse("admin:versions_app_agentversion_add"))

    assert (deletion.status_code, addition.status_code) == (403, 403)


def test_staff_see_only_versions_of_their_own_agents(client, agent):
    client.force_login(member("publisher", "north", is_staff=True))
    with change(message="Unseen"):
        agent.edit({"name": "Hidden"})

    versions = client.get(reverse("admin:versions_app_agentversion_changelist")).content.decode()
    activations = client.get(reverse("admin:versions_app_activation_changelist")).content.decode()

    assert "Unseen" not in versions
    assert agent.pk not in activations


def test_markup_in_a_snapshot_is_escaped(client, staff):
    agent = AgentFactory(instructions="<script>alert(1)</script>")
    address = reverse("admin:versions_app_agentversion_change", args=[agent.active_version_id])

    page = client.get(address).content.decode()
    assert "<script>alert" not in page
    assert "<summary>All of it as JSON</summary><pre>{" in page


@pytest.mark.parametrize("action", ["publish", "restore"])
def test_publishing_needs_a_confirmation(client, staff, agent, action):
    answer = act(client, agent.versions.get(version_number=1), action, confirmed="")

    assert b"Changes to the live version" in answer.content
    assert b'id="section-name"' in answer.content
    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.versions.count()) == (2, 2)


@pytest.mark.parametrize("action", ["publish", "restore"])
def test_a_stale_confirmation_is_shown_again(client, staff, agent, action):
    seen = agent.active_version_id
    agent.edit({"name": "Concierge"})

    answer = act(client, agent.versions.get(version_number=1), action, live=seen, reason="Too loud")

    assert b"live version changed since you opened this page" in answer.content
    assert b'value="Too loud"' in answer.content
    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.versions.count()) == (3, 3)


def test_a_draft_that_was_saved_meanwhile_is_not_replaced(client, staff, agent):
    version, seen = agent.versions.get(version_number=1), agent.head_version_id
    with change(publish=False):
        agent.edit({"name": "Night porter"})

    refused = act(client, version, "restore", head=seen, reason="Too loud").content.decode()

    assert "The draft changed since you opened this page. Nothing was changed." in refused
    assert "Editing continues from it instead of the draft v3." in refused
    assert f'name="head" value="{agent.head_version_id}"' in refused
    agent.refresh_from_db()
    assert (agent.has_draft, agent.versions.count()) == (True, 3)
    act(client, version, "publish", head=seen)
    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.head_version.version_number) == (1, 3)


def test_the_reason_of_the_confirmation_is_stored(client, staff, agent):
    act(client, agent.versions.get(version_number=1), "publish", reason="Too many complaints")

    assert agent.activations.first().reason == "Too many complaints"


def test_a_version_shows_the_differences_to_its_base(client, staff, agent):
    page = client.get(reverse("admin:versions_app_agentversion_change", args=[agent.active_version_id]))

    assert b'id="section-name"' in page.content
    assert b"line-removed" in page.content


LINES = [f"Rule {number}" for number in range(50)]


def test_folded_lines_of_a_diff_can_be_opened(client, staff, agent):
    agent.edit({"instructions": "\n".join(LINES)})
    agent.edit({"instructions": "\n".join([*LINES, "Be kind."])})
    address = reverse("admin:versions_app_agentversion_change", args=[agent.active_version_id])

    folded, opened = client.get(address).content, client.get(f"{address}?unfold=instructions-1").content

    assert (b"Show 47 unchanged lines" in folded, b"Rule 7<" in folded) == (True, False)
    assert (b"Show 47 unchanged lines" in opened, b"Rule 7<" in opened) == (False, True)


def test_opening_folded_lines_confirms_nothing(client, staff, agent):
    agent.edit({"instructions": "\n".join([*LINES, "Be kind."])})
    with change(publish=False):
        agent.edit({"instructions": "\n".join(LINES)})
    draft = agent.versions.get(version_number=4)

    folded = act(client, draft, "publish", confirmed="").content
    opened = act(client, draft, "publish", confirmed="", unfold="instructions-1", reason="Kinder").content

    assert (b"Show 47 unchanged lines" in folded, b"Rule 7<" in folded) == (True, False)
    assert (b"Rule 7<" in opened, b'value="Kinder"' in opened) == (True, True)
    agent.refresh_from_db()
    assert agent.active_version.version_number == 3


def test_selected_versions_are_pinned_where_the_role_allows(client, agent):
    client.force_login(member("editor", is_staff=True))
    foreign = AgentFactory(owner_id="north").active_version
    act(client, agent.versions.get(version_number=1), "pin")
    act(client, foreign, "pin")

    assert agent.versions.get(version_number=1).pinned
    foreign.refresh_from_db()
    assert not foreign.pinned


def test_no_version_of_an_archived_agent_is_changed(client, staff, agent):
    archived, version = archived_agent("old"), agent.versions.get(version_number=1)
    theirs = archived.versions.get()

    assert client.post(change_url(theirs), {"name": "New", "pinned": "on"}).status_code == 403
    answer = act(client, version, "pin", _selected_action=[version.pk, theirs.pk])

    texts = [str(message) for message in get_messages(answer.wsgi_request)]
    assert texts == [f"1 of 2 versions pinned. {PIN_HINT}"]
    assert archived.versions.filter(name="", pinned=False).exists()


@pytest.mark.parametrize(("action", "pinned"), [("pin", False), ("unpin", True)])
def test_pinning_needs_a_confirmation(client, staff, agent, action, pinned):
    version = agent.versions.get(version_number=1)
    version.update_description(name="First", pinned=pinned)

    html = act(client, version, action, confirmed="").content.decode()
    before = agent.versions.get(version_number=1).pinned
    act(client, version, action)

    assert "v1 of Porter: First" in html
    assert f'name="_selected_action" value="{version.pk}"' in html
    assert (before, agent.versions.get(version_number=1).pinned) == (pinned, not pinned)


def test_pinning_too_many_versions_is_refused(client, staff, agent, monkeypatch):
    monkeypatch.setattr("versions_app.admin.version_actions.MAX_SELECTED", 1)
    everything = {"action": "pin", "_selected_action": [version.pk for version in agent.versions.all()]}

    answer = client.post(reverse("admin:versions_app_agentversion_changelist"), {**everything, "confirmed": "yes"})

    assert [str(message) for message in get_messages(answer.wsgi_request)] == ["Select at most 1 versions."]
    assert not agent.versions.filter(pinned=True).exists()


def test_managers_change_retention_rules_of_their_owners(client):
    client.force_login(member("manager", "north", is_staff=True))
    address = reverse("admin:versions_app_retentionrule_add")

    own = client.post(address, {"owner_id": "north", "versions": "20", "days": ""})
    other = client.post(address, {"owner_id": "south", "versions": "20", "days": ""})

    assert (own.status_code, other.status_code) == (302, 200)
    assert [rule.owner_id for rule in RetentionRule.objects.all()] == ["north"]


def test_publishers_cannot_change_retention_rules(client):
    client.force_login(member("publisher", "north", is_staff=True))
    rule = RetentionRule.objects.create(owner_id="north", versions=20)

    page = client.get(reverse("admin:versions_app_retentionrule_change", args=[rule.pk]))

    assert page.status_code in (302, 403)


@pytest.mark.parametrize("action", ["publish", "restore"])
def test_a_version_with_circular_sub_agents_is_refused_with_the_path(client, staff, agent, action):
    agent.edit({"agents": ["helper"]})
    agent.edit({"agents": []})
    AgentFactory(id="helper", agents=[agent.pk])

    answer = act(client, agent.versions.get(version_number=3), action)

    messages = [str(message) for message in get_messages(answer.wsgi_request)]
    assert messages == [f"This is a circular reference: {agent.pk} → helper → {agent.pk}."]
    assert agent.versions.count() == 4
    assert agent.activations.count() == 4


def rendered(client, version):
    page = client.get(reverse("admin:versions_app_agentversion_change", args=[version.pk])).content.decode()
    return page.partition('<div class="difference">')[2].partition("snapshot_json")[0]


def test_the_first_version_lists_only_what_is_set(client, staff):
    agent = AgentFactory(description="", metadata={}, tools=[])

    page = rendered(client, agent.versions.get())

    assert "First version. The complete version is shown." in page
    assert "Instructions" in page
    for label in ("Description", "Metadata", "Tools", "Memory", "Scorers"):
        assert f"<h3>{label}</h3>" not in page
    assert "(the whole value)" not in page
    assert "null" not in page


def test_an_object_of_the_first_version_is_compared_by_its_members(client, staff):
    agent = AgentFactory(metadata={"audience": "guests"}, input_processors=[{"key": "trim-whitespace"}])

    page = rendered(client, agent.versions.get())

    assert "audience" in page
    assert "[0]" in page
    assert "(the whole value)" not in page


def test_the_live_version_is_not_published_again(client, staff, agent):
    live = agent.versions.get(version_number=2)

    for confirmed in ("", "yes"):
        answer = act(client, live, "publish", confirmed=confirmed)
        assert str([*get_messages(answer.wsgi_request)][-1]) == f"Version 2 of {agent.name} is already live."

    assert agent.activations.count() == 2


def test_the_version_where_editing_starts_is_not_restored(client, staff, agent):
    answer = act(client, agent.versions.get(version_number=2), "restore")

    expected = f"Editing already continues from version 2 of {agent.name}."
    assert str([*get_messages(answer.wsgi_request)][-1]) == expected
    assert agent.versions.count() == 2


@pytest.mark.parametrize(
    ("action", "button"),
    [("publish", "Publish v1 (replaces v2)"), ("restore", "Restore and publish v1 (replaces v2)")],
)
def test_the_confirmation_names_the_users_and_repeats_the_act(client, staff, agent, action, button):
    AgentFactory(id="front-desk", name="Front desk", agents=[agent.pk])

    page = act(client, agent.versions.get(version_number=1), action, confirmed="").content.decode()

    assert f'name="confirmed" value="{button}"' in page
    assert "Used by: <a" in " ".join(page.split())
    assert ">Front desk</a>" in page
