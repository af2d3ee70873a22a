"""Editing agents in Django admin."""

import json
import re

import pytest
from django.contrib.admin.utils import quote
from django.contrib.messages import get_messages
from django.urls import reverse

from agents_app.admin.forms import FORM_FIELDS, LIST_FIELDS, OBJECT_FIELDS
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, UserFactory, member

pytestmark = pytest.mark.django_db


def admin_form(agent, **changed):
    """Return the data that a browser sends for the admin form with these changes."""
    fields = {name: getattr(agent, name) for name in FORM_FIELDS}
    # Django's form contains these twice: the initial value in a hidden field, and the current one.
    fields |= {f"initial-{name}": fields[name] for name in OBJECT_FIELDS if name != "model"}
    fields |= {
        "owner_id": agent.owner_id,
        "revision": agent.revision,
        "publish": "on",
        "change_message": "",
        **changed,
    }
    texts = {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in fields.items()}
    return {name: text for name, text in texts.items() if text is not None and text is not False}


def save(client, agent, **changed):
    return client.post(reverse("admin:agents_app_agent_change", args=[agent.pk]), admin_form(agent, **changed))


@pytest.fixture
def staff(client):
    user = UserFactory(is_staff=True, is_superuser=True, username="root")
    client.force_login(user)
    return user


def test_a_change_creates_one_version(client, staff):
    agent = AgentFactory()

    save(client, agent, name="Porter", change_message="A better name")

    version = agent.versions.get(version_number=2)
    assert (version.author, version.source, version.change_message) == (staff, "admin", "A better name")
    assert (version.changed_fields, version.based_on) == (["name"], 1)


def test_a_command_of_a_program_is_422(client, staff):
    agent = AgentFactory()

    refused = save(client, agent, mcp_clients={"office": {"command": "sh", "args": ["-c", "id"]}})

    (error,) = refused.context["adminform"].form.errors["mcp_clients"]
    assert (refused.status_code, error.partition(" ")[0]) == (422, "office:")
    assert agent.versions.count() == 1


def test_repeated_values_of_a_browser_are_kept(client, staff):
    agent = AgentFactory(tools=["calculator"])

    page = client.get(reverse("admin:agents_app_agent_change", args=[agent.pk])).content.decode()

    names = set(re.findall(r'name="(initial-\w+)"', page))
    assert names == {name for name in admin_form(agent) if name.startswith("initial-")}


def test_saving_without_a_change_creates_no_version(client, staff):
    agent = AgentFactory(instructions="one\ntwo", metadata={"b": 1, "a": [1.5, None]})

    answer = save(client, agent, instructions="one\r\ntwo")

    assert answer.status_code == 302
    assert agent.versions.count() == 1


def test_declared_variables_are_saved_removed_and_checked(client, staff):
    agent = AgentFactory()

    save(client, agent, request_context_schema={"properties": {"tone": {"default": "calm"}}})
    agent.refresh_from_db()
    invalid = save(client, agent, request_context_schema={"properties": {"tone": {"type": "colour"}}})
    save(client, agent, request_context_schema="")

    third, second, _ = agent.versions.all()
    assert second.snapshot["requestContextSchema"] == {"properties": {"tone": {"default": "calm"}}}
    assert third.changed_fields == second.changed_fields == ["requestContextSchema"]
    assert "properties.tone.type: The type must be one of" in invalid.content.decode()


def test_an_unregistered_key_is_a_warning(client, staff):
    agent = AgentFactory()

    answer = save(client, agent, memory="gone")

    messages = [str(message) for message in get_messages(answer.wsgi_request)]
    assert "No memory is registered as 'gone'. The agent runs without it." in messages
    assert agent.versions.count() == 2


def test_creating_an_agent_creates_its_first_version(client, staff):
    agent = Agent(id="new one", name="New", instructions=" kept ", model={"provider": "demo", "name": "echo"})

    client.post(reverse("admin:agents_app_agent_add"), {"id": agent.id, **admin_form(agent)})

    version = Agent.objects.get(pk="new one").active_version
    assert (version.version_number, version.source, version.snapshot["instructions"]) == (1, "admin", " kept ")


def test_a_change_without_publishing_is_a_draft(client, staff):
    agent = AgentFactory()

    save(client, agent, name="Porter", publish=False)

    agent.refresh_from_db()
    assert (agent.has_draft, agent.active_version.version_number) == (True, 1)


def test_a_stale_form_is_refused_and_changes_nothing(client, staff):
    opened = AgentFactory()
    Agent.objects.get(pk=opened.pk).edit({"name": "Doorman"})

    answer = save(client, opened, instructions="Mine")

    assert "This agent was saved since you opened it." in answer.content.decode()
    assert Agent.objects.get(pk=opened.pk).instructions != "Mine"


def test_every_error_is_shown_at_its_field(client, staff):
    agent = AgentFactory()

    answer = save(client, agent, model='{"provider": ""}', metadata='{"a": 1, "a": 2}')

    errors = answer.context["adminform"].form.errors
    assert set(errors) == {"model", "metadata"}
    assert agent.versions.count() == 1


def test_an_editor_may_save_a_draft_but_not_publish(client):
    client.force_login(member("editor", is_staff=True))
    agent = AgentFactory()

    refused = save(client, agent, name="Porter")
    saved = save(client, agent, name="Porter", publish=False)

    assert "Publisher role" in refused.content.decode()
    assert saved.status_code == 302
    assert list(agent.versions.values_list("version_number", flat=True)) == [2, 1]


def test_staff_see_agents_of_their_owners_only(client):
    client.force_login(member("publisher", "north", is_staff=True))
    mine, other = AgentFactory(owner_id="north", name="Mine"), AgentFactory(owner_id="south", name="Other")

    listed = client.get(reverse("admin:agents_app_agent_changelist")).content.decode()
    hidden = client.get(reverse("admin:agents_app_agent_change", args=[other.pk]))

    assert mine.name in listed
    assert other.name not in listed
    assert hidden.status_code == 302
    assert save(client, other, name="Stolen").status_code == 302
    assert Agent.objects.get(pk=other.pk).name == "Other"


def test_changing_the_owner_needs_publisher_for_both_owners(client):
    client.force_login(member("publisher", "north", is_staff=True))
    agent = AgentFactory(owner_id="north")

    refused = save(client, agent, owner_id="south")

    assert "Publisher role in both teams" in refused.content.decode()
    assert Agent.objects.get(pk=agent.pk).owner_id == "north"


def test_changing_the_owner_creates_no_version(client, staff):
    agent = AgentFactory(owner_id="north")

    save(client, agent, owner_id="south")

    agent = Agent.objects.get(pk=agent.pk)
    assert (agent.owner_id, agent.versions.count(), agent.revision) == ("south", 1, 2)


def test_deleting_an_agent_deletes_its_history(client, staff):
    other, agent = AgentFactory(), AgentFactory()

    client.post(reverse("admin:agents_app_agent_delete", args=[agent.pk]), {"typed": agent.name})
    client.post(
        reverse("admin:agents_app_agent_changelist"),
        {
            "action": "delete_agents",
            "_selected_action": [other.pk],
            "confirmed": "Delete",
            "typed": "delete 1 agent",
        },
    )

    assert Agent.objects.count() == 0


def with_a_draft(**fields):
    agent = AgentFactory()
    with change(publish=False):
        agent.edit(fields or {"instructions": "Draft"})
    return agent


def test_an_ordinary_save_neither_publishes_nor_loses_a_draft(client, staff):
    agent = with_a_draft()

    save(client, agent, name="Porter", publish=False)

    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.head_version.based_on) == (1, 2)
    assert (agent.instructions, agent.name) == ("Draft", "Porter")


def test_publishing_a_change_publishes_the_draft_too(client, staff):
    agent = with_a_draft()

    save(client, agent, name="Porter")

    agent.refresh_from_db()
    live = agent.active_version
    assert (live.version_number, live.snapshot["instructions"], live.snapshot["name"]) == (3, "Draft", "Porter")


def test_publishing_an_unchanged_draft_creates_no_version(client, staff):
    agent = with_a_draft()

    save(client, agent)

    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.versions.count()) == (2, 2)


def test_a_draft_is_not_published_by_default(client, staff):
    drafted, plain = with_a_draft(), AgentFactory()

    forms = [
        client.get(reverse("admin:agents_app_agent_change", args=[agent.pk])).context["adminform"].form
        for agent in (drafted, plain)
    ]

    assert [form["publish"].value() for form in forms] == [False, True]


def test_an_editor_cannot_publish_a_draft(client):
    client.force_login(member("editor", is_staff=True))
    agent = with_a_draft()

    refused = save(client, agent)

    agent.refresh_from_db()
    assert "Publisher role" in refused.content.decode()
    assert agent.active_version.version_number == 1


def test_lists_are_read_only_and_link_to_the_editor(client, staff):
    processors = [{"key": "trim-whitespace"}]
    agent = AgentFactory(id="a b", tools=["calculator", "gone"], agents=["helper"], input_processors=processors)

    page = client.get(reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])).content.decode()
    save(client, agent, name="Porter", tools=["other"], agents=["a b"])

    assert "<dt>Tools</dt><dd><code>calculator</code>, <code>gone</code></dd>" in page
    assert "<dt>Sub-agents</dt><dd><code>helper</code></dd>" in page
    assert "<dt>Input processors</dt><dd><code>trim-whitespace</code></dd>" in page
    assert "<dt>Workflows</dt><dd>none</dd>" in page
    assert f'<a href="{reverse("agents:edit", args=[agent.pk])}">Open in the editor</a>' in page
    assert not re.search(rf'name="({"|".join(LIST_FIELDS)})"', page)
    agent.refresh_from_db()
    assert (agent.name, agent.tools, agent.agents) == ("Porter", ["calculator", "gone"], ["helper"])


def test_a_new_agent_gets_its_lists_in_the_editor(client, staff):
    page = client.get(reverse("admin:agents_app_agent_add")).content.decode()

    assert "Add tools, workflows and sub-agents in the editor." in page
    assert "Open in the editor" not in page


def test_instructions_have_a_large_box(client, staff):
    page = client.get(reverse("admin:agents_app_agent_add")).content.decode()
    (box,) = re.findall(r'<textarea[^>]*name="instructions"[^>]*>', page)

    assert 'rows="20"' in box
    assert 'class="code-field"' in box


@pytest.mark.parametrize("is_superuser", [True, False])
def test_the_team_is_chosen_from_a_list(client, is_superuser):
    person = member("publisher", "north", is_staff=True, is_superuser=is_superuser)
    client.force_login(person)
    agent = AgentFactory(owner_id="north")
    AgentFactory(owner_id="south")

    for address in ("admin:agents_app_agent_add", "admin:agents_app_agent_change"):
        page = client.get(reverse(address, args=[agent.pk] if address.endswith("change") else [])).content.decode()
        choices = re.findall(r"<option[^>]*>([^<]*)<", page.partition('name="owner_id"')[2].partition("</select>")[0])
        assert choices == (["Shared", "north", "south"] if is_superuser else ["north"])


def test_a_draft_with_circular_sub_agents_is_not_published(client, staff):
    agent = AgentFactory(id="a")
    with change(publish=False):
        agent.edit({"agents": ["b"]})
    AgentFactory(id="b", agents=["a"])

    refused = save(client, agent)

    assert "This is a circular reference: a → b → a." in refused.content.decode()
    assert Agent.objects.get(pk="a").active_version.version_number == 1
