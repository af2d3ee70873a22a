"""Warnings of release gates in Django admin."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents_app.editing.change_context import change
from evals_app.models import ReleaseGate
from tests.agents_app.admin.test_publishing_drafts import choose_action, confirm, messages
from tests.evals_app.experiment_runs import make_dataset
from tests.evals_app.gates.test_gates import experiment_of
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


def test_publishing_a_copy_of_the_live_version_warns_of_nothing(client, agent):
    with change(publish=False):
        copy = agent.versions.get(version_number=1).restore()

    assert "needs 0.80" not in act(client, copy, "publish", confirmed="").content.decode()


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


def test_the_question_names_the_gates_of_the_team_of_each_draft(client, agent):
    agent.gates.all().delete()
    other = AgentFactory(owner_id="sales", instructions="One")
    with change(publish=False):
        other.edit({"instructions": "Two"})
    for owner_id, minimum in (("", 0.7), ("sales", 0.9)):
        ReleaseGate.objects.create(
            owner_id=owner_id, dataset_id="support", scorer="exact", minimum=minimum, mode=ReleaseGate.Mode.WARN
        )

    page, both = (choose_action(client, *agents).content.decode() for agents in ([agent], [agent, other]))

    assert [page.count(text) for text in ("needs 0.70", "needs 0.90")] == [1, 0]
    assert [both.count(text) for text in ("needs 0.70", "needs 0.90")] == [1, 1]


def test_drafts_that_are_all_refused_cannot_be_published_from_their_question(client, agent):
    refusal = 'disabled title="Release gates are not met."'
    assert refusal not in choose_action(client, agent).content.decode()

    agent.gates.update(mode=ReleaseGate.Mode.ENFORCE)

    assert refusal in choose_action(client, agent).content.decode()


def draft_with_gates(agent_id):
    """Return an agent whose draft misses a gate of its own and one for differences, with an experiment of both."""
    row = AgentFactory(id=agent_id, instructions="One")
    for statistic, mode in (("mean", "enforce"), ("difference_to_live", "warn")):
        ReleaseGate.objects.create(
            agent=row, dataset_id="support", scorer="exact", minimum=0.99, statistic=statistic, mode=mode
        )
    with change(publish=False):
        row.edit({"instructions": f"Two of {agent_id}"})
    for version in row.versions.all():
        experiment_of(version, mean=0.9 - version.version_number / 10, sub_agent_versions={"concierge": "1"})
    return row


def test_the_question_to_publish_reads_the_gates_of_all_drafts_at_once(client, agent, django_assert_max_num_queries):
    drafts = [draft_with_gates(f"agent-{number}") for number in range(4)]
    choose_action(client, drafts[0])
    with CaptureQueriesContext(connection) as one:
        page = choose_action(client, drafts[0]).content.decode()

    # One more: a process looks every second whether the table of scorers has changed.
    with django_assert_max_num_queries(len(one) + 1):
        pages = choose_action(client, *drafts).content.decode()

    reasons = ("its last experiment scored 0.70", "its last experiment scored -0.10", "Sub-agents changed")
    assert [page.count(reason) for reason in reasons] == [1, 1, 1]
    assert [pages.count(reason) for reason in reasons] == [4, 4, 4]


def test_the_question_of_a_draft_without_gates_asks_for_gates_once(client, agent):
    agent.gates.all().delete()
    choose_action(client, agent)

    with CaptureQueriesContext(connection) as queries:
        choose_action(client, agent)

    assert sum("evals_app_releasegate" in query["sql"] for query in queries) == 1
