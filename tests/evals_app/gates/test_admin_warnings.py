"""Warnings of release gates in Django admin."""

import pytest
from django.urls import reverse

from agents_app.editing.change_context import change
from evals_app.models import ReleaseGate
from tests.agents_app.admin.test_publishing_drafts import choose_action, confirm, messages
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, UserFactory
from tests.versions_app.admin.test_versions import act

pytestmark = pytest.mark.django_db

WARNING = "Version 2 needs 0.80 on 'Equals the ground truth' over 'Support'; no experiment has tested it."
ESCAPED = WARNING.replace("'", "&#x27;")


@pytest.fixture
def agent(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    agent = AgentFactory(id="concierge", name="Concierge", instructions="One")
    ReleaseGate.objects.create(
        agent=agent, dataset=make_dataset("One"), scorer="exact", minimum=0.8, mode=ReleaseGate.Mode.WARN
    )
    with change(publish=False):
        agent.edit({"instructions": "Two"})
    return agent


def test_publishing_a_version_warns_before_and_after(client, agent):
    draft = agent.versions.get(version_number=2)

    page = act(client, draft, "publish", confirmed="").content.decode()
    answer = act(client, draft, "publish")

    assert ESCAPED in page
    assert messages(answer) == ["Version 2 of concierge is live.", WARNING]


def test_publishing_drafts_warns_before_and_after(client, agent):
    page = choose_action(client, agent)
    answer = confirm(client, page)

    assert ESCAPED in page.content.decode()
    assert messages(answer) == ["Published 1 draft.", f"Concierge: {WARNING}"]


def test_saving_an_agent_warns(client, agent):
    address = reverse("admin:agents_app_agent_change", args=[agent.pk])
    form = client.get(address).context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    sent = {name: value for name, value in values.items() if value not in (None, False)} | {"publish": "on"}

    answer = client.post(address, sent | {"description": "Warmly"})

    assert any(message.startswith("Version 3 needs 0.80") for message in messages(answer)), answer.content.decode()


def test_a_refused_version_cannot_be_published_from_its_question(client, agent):
    draft = agent.versions.get(version_number=2)
    refusal = 'disabled title="A release gate is not met."'
    assert refusal not in act(client, draft, "publish", confirmed="").content.decode()

    agent.gates.update(mode=ReleaseGate.Mode.ENFORCE)

    assert refusal in act(client, draft, "publish", confirmed="").content.decode()


def test_drafts_that_are_all_refused_cannot_be_published_from_their_question(client, agent):
    refusal = 'disabled title="Release gates are not met."'
    assert refusal not in choose_action(client, agent).content.decode()

    agent.gates.update(mode=ReleaseGate.Mode.ENFORCE)

    assert refusal in choose_action(client, agent).content.decode()
