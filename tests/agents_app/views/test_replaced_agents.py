"""A dialog that was opened for an agent does nothing to another one that has its ID since."""

import pytest
from django.urls import reverse

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


def test_a_dialog_of_the_same_agent_is_accepted(publisher):
    agent = with_two_versions()
    url = reverse("agents:archive", args=[agent.pk])
    form = form_data(publisher.get(url, headers={"HX-Request": "true"}).content.decode()).dict()

    publisher.post(url, form)

    assert form["agent_key"] == agent.row_key
    assert Agent.objects.get(pk=agent.pk).archived_at is not None
