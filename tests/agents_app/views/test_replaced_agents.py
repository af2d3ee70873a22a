"""A dialog that was opened for an agent does nothing to another one that has its ID since."""

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse
from django.utils import timezone

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory
from tests.form_submission import form_data

pytestmark = pytest.mark.django_db

DIALOGS = [
    ("agents:delete", (), {"typed": "Concierge"}),
    ("agents:delete", (), {"typed": "Not its name"}),
    ("agents:archive", (), {}),
    ("agents:change_owner", (), {"owner_id": ""}),
    ("agents:change_owner", (), {"owner_id": "nobody"}),
    ("versions:activate", (1,), {}),
    ("versions:restore", (1,), {"publish": "yes"}),
    ("versions:delete", (1,), {}),
    ("versions:describe", (1,), {"name": "First"}),
    ("versions:duplicate", (1,), {"id": "copy"}),
    ("versions:snapshot", (), {"name": "Second"}),
    ("versions:discard_draft", (), {}),
]


def with_two_versions():
    agent = AgentFactory(id="concierge", name="Concierge")
    agent.edit({"instructions": "Second."})
    return agent


def with_draft():
    agent = with_two_versions()
    with change(publish=False):
        agent.edit({"instructions": "Draft."})
    return agent


def state(agent):
    row = Agent.objects.get(pk=agent.pk)
    names = [version.name for version in row.versions.all()]
    return row.row_key, row.revision, row.owner_id, row.archived_at, names, Agent.objects.count()


@pytest.mark.parametrize(("name", "extra_args", "entered"), DIALOGS)
def test_the_dialog_of_another_agent_is_refused(publisher, name, extra_args, entered):
    agent = with_two_versions()
    url = reverse(name, args=[agent.pk, *extra_args])
    form = form_data(publisher.get(url, headers={"HX-Request": "true"}).content.decode()).dict() | entered
    agent.delete()
    other = with_two_versions()
    before = state(other)

    refused = publisher.post(url, form)

    assert (refused.status_code, state(other)) == (409, before)
    assert "The agent was deleted in the meantime" in refused.content.decode()


def test_a_blank_key_names_no_agent(publisher):
    agent = with_two_versions()

    refused = publisher.post(reverse("agents:archive", args=[agent.pk]), {"agent_key": ""})

    assert (refused.status_code, Agent.objects.get(pk=agent.pk).archived_at) == (409, None)


def test_a_dialog_of_the_same_agent_is_accepted(publisher):
    agent = with_two_versions()
    url = reverse("agents:archive", args=[agent.pk])
    form = form_data(publisher.get(url, headers={"HX-Request": "true"}).content.decode()).dict()

    publisher.post(url, form)

    assert form["agent_key"] == agent.row_key
    assert Agent.objects.get(pk=agent.pk).archived_at is not None


@pytest.mark.parametrize("name", ["agents:archive", "versions:discard_draft", "versions:restore"])
def test_undo_does_nothing_to_another_agent(publisher, name):
    agent = with_draft()
    url = reverse(name, args=[agent.pk, *([1] if name == "versions:restore" else [])])
    form = form_data(publisher.get(url).content.decode()).dict()
    (message,) = get_messages(publisher.post(url, form).wsgi_request)
    agent.delete()
    other = with_draft()
    with change(publish=False):
        other.versions.get(version_number=1).restore()
    Agent.objects.filter(pk=other.pk).update_unguarded(archived_at=timezone.now() if "archive" in name else None)
    before = state(other)

    refused = publisher.post(message.extra_tags)

    assert (refused.status_code, state(other)) == (409, before)


@pytest.mark.parametrize("action", ["duplicate", "archive", "unarchive", "delete"])
def test_an_action_on_selected_agents_leaves_out_another_one(publisher, action):
    agent, present = with_two_versions(), AgentFactory()
    page = form_data(publisher.get(reverse("agents:list")).content.decode())
    agent.delete()
    other = with_two_versions()
    before = state(other)
    sent = {"act": action, "agent": [other.pk, present.pk], "sure": "yes", "typed": "delete 1 agent"}

    answer = publisher.post(reverse("agents:selected"), sent | {"agent_key": page.getlist("agent_key")})

    sentences = [result.sentence for result in answer.context["results"]]
    assert (sentences[0], state(other)[:5]) == ("It is no longer there.", before[:5])
    assert sentences[1] != sentences[0]


@pytest.mark.parametrize("action", ["archive", "delete"])
def test_the_question_about_selected_agents_is_not_about_another_one(publisher, action):
    agent = with_two_versions()
    url = reverse("agents:selected")
    form = form_data(publisher.post(url, {"act": action, "agent": [agent.pk]}).content.decode())
    agent.delete()
    other = with_two_versions()
    before = state(other)

    publisher.post(url, form.dict() | {"typed": "delete 1 agent"})

    assert state(other) == before


def test_undo_of_an_archiving_of_selected_agents_leaves_out_another_one(publisher):
    agent, url = with_two_versions(), reverse("agents:selected")
    form = form_data(publisher.post(url, {"act": "archive", "agent": [agent.pk]}).content.decode())
    undo = form_data(publisher.post(url, form).content.decode())
    agent.delete()
    other = with_two_versions()
    Agent.objects.filter(pk=other.pk).update_unguarded(archived_at=timezone.now())
    before = state(other)

    publisher.post(url, undo)

    assert (undo["act"], state(other)) == ("unarchive", before)
