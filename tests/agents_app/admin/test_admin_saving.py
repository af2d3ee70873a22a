"""Editing agents in Django admin."""

import re

import pytest
from django.contrib.admin.utils import quote
from django.contrib.messages import get_messages
from django.urls import reverse

from agents_app.admin.forms import FORM_FIELDS, MODEL_INPUTS, READ_ONLY_FIELDS, AgentAdminForm
from agents_app.configuration import schema
from agents_app.editing.change_context import change
from agents_app.forms.field_values import to_form_values
from agents_app.forms.fields import id_taken_message
from agents_app.models import Agent
from tests.factories import AgentFactory, UserFactory, member

pytestmark = pytest.mark.django_db


def admin_form(agent, **changed):
    """Return the data that a browser sends for the admin form with these changes."""
    values = to_form_values({name: getattr(agent, name) for name in schema.FIELDS})
    fields = {name: values.get(name) for name in (*FORM_FIELDS, *MODEL_INPUTS) if name != "model"}
    fields |= {
        "owner_id": agent.owner_id,
        "revision": agent.revision,
        "publish": "on",
        "change_message": "",
        **changed,
    }
    return {name: text for name, text in fields.items() if text is not None and text is not False}


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


def test_saving_without_a_change_creates_no_version(client, staff):
    agent = AgentFactory(instructions="one\ntwo", metadata={"b": 1, "a": [1.5, None]})

    answer = save(client, agent, instructions="one\r\ntwo")

    assert answer.status_code == 302
    assert agent.versions.count() == 1


def test_a_model_is_changed_in_fields_and_keeps_its_other_settings(client, staff):
    model = {"provider": "demo", "name": "echo", "topP": 0.50, "extra": {"a": 1}}
    agent = AgentFactory(model=model)

    save(client, agent, temperature="0.10", top_p="")

    version = agent.versions.get(version_number=2)
    assert version.snapshot["model"] == {"provider": "demo", "name": "echo", "temperature": 0.1, "extra": {"a": 1}}
    assert version.changed_fields == ["model"]


def test_a_memory_is_chosen_from_a_list(client, staff):
    agent = AgentFactory(memory="gone")

    page = client.get(reverse("admin:agents_app_agent_change", args=[agent.pk])).content.decode()
    save(client, agent, memory="last-messages")

    choices = re.findall(r"<option[^>]*>([^<]*)<", page.partition('name="memory"')[2].partition("</select>")[0])
    assert choices[0] == "No memory"
    assert "gone (not registered)" in choices
    assert Agent.objects.get().memory == "last-messages"


@pytest.mark.parametrize(("choice", "stored"), [(":options", {"options": {"lastMessages": 3}}), ("", None)])
def test_options_of_a_memory_stay_or_are_replaced(client, staff, choice, stored):
    agent = AgentFactory(memory={"options": {"lastMessages": 3}})

    save(client, agent, name="Porter", memory=choice)

    assert Agent.objects.get().memory == stored
    assert Agent.objects.get().name == "Porter"


def test_no_box_asks_for_json(client, staff):
    agent = AgentFactory(
        metadata={"tags": ["night"]},
        memory={"options": {"lastMessages": 3}},
        request_context_schema={"properties": {"tone": {"default": "calm"}}},
    )

    page = client.get(reverse("admin:agents_app_agent_change", args=[agent.pk])).content.decode()

    boxes = re.findall(r"<textarea[^>]*name=\"(\w+)\"", page)
    assert boxes == ["description", "instructions"]
    assert '<dt>LastMessages</dt><dd dir="auto">3</dd>' in page
    assert "All of it as JSON" in page
    assert "&quot;tone&quot;" in page


def test_an_unregistered_key_is_a_warning(client, staff):
    agent = AgentFactory(memory="gone")

    answer = save(client, agent, description="Changed")

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

    answer = save(client, agent, provider="", temperature="hot")

    errors = answer.context["adminform"].form.errors
    assert set(errors) == {"provider", "temperature"}
    assert agent.versions.count() == 1


def test_a_blank_form_has_one_error_for_each_input(client, staff):
    form = client.post(reverse("admin:agents_app_agent_add"), {}).context["adminform"].form

    required = ["This is required."]
    assert form.errors == {"id": required, "name": required, "provider": required, "model_name": required}


def test_an_invalid_setting_of_a_model_is_the_only_error(client, staff):
    agent = AgentFactory()

    form = save(client, agent, temperature="hot").context["adminform"].form

    assert form.errors == {"temperature": ["This must be a number, such as 0.7."]}


def test_a_taken_id_is_said_as_in_the_editor(client, staff):
    agent = AgentFactory(id="porter")

    answer = client.post(reverse("admin:agents_app_agent_add"), admin_form(agent, id="porter"))

    assert answer.context["adminform"].form.errors == {"id": [id_taken_message("porter")]}


def test_an_id_that_another_request_takes_meanwhile_is_an_error_of_the_form(client, staff, monkeypatch):
    agent, checks = AgentFactory(id="porter"), []
    check = AgentAdminForm.clean_id

    def check_the_second_time(form):  # the first time, the other agent was not there yet
        checks.append(form)
        return check(form) if len(checks) > 1 else "porter"

    monkeypatch.setattr(AgentAdminForm, "clean_id", check_the_second_time)
    monkeypatch.setattr(AgentAdminForm, "validate_unique", lambda form: None)

    answer = client.post(reverse("admin:agents_app_agent_add"), admin_form(agent, id="porter"))

    assert answer.context["adminform"].form.errors == {"id": [id_taken_message("porter")]}
    assert (len(checks), Agent.objects.count()) == (2, 1)


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

    assert "<code>calculator</code>" in page
    assert "<code>gone</code> not registered" in page
    assert "<code>helper</code>" in page
    assert "trim-whitespace" in page
    assert re.search("<dt>Not set</dt><dd[^>]*>[^<]*Workflows", page)
    assert f'<a href="{reverse("agents:edit", args=[agent.pk])}">Open in the editor</a>' in page
    assert not re.search(rf'name="({"|".join(READ_ONLY_FIELDS)})"', page)
    agent.refresh_from_db()
    assert (agent.name, agent.tools, agent.agents) == ("Porter", ["calculator", "gone"], ["helper"])


def test_a_new_agent_gets_its_lists_in_the_editor(client, staff):
    page = client.get(reverse("admin:agents_app_agent_add")).content.decode()

    assert "Add tools, sub-agents and everything else in the editor." in page
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
