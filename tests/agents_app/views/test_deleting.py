"""Deleting on the pages: dependents are named, and agents in use are left out unless confirmed."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from access_app.role import Role
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, member
from tests.page_client import browser
from versions_app.models import DeletedAgent

pytestmark = pytest.mark.django_db

SELECTED = reverse("agents:selected")


def delete_selected(client, agents, **sent):
    sent = {name: value for name, value in {"act": "delete", "sure": "yes", **sent}.items() if value is not None}
    return client.post(SELECTED, {**sent, "agent": [agent.pk for agent in agents]})


def remaining():
    return set(Agent.objects.values_list("pk", flat=True))


@pytest.fixture
def used(agent):
    """Return an agent that another one uses as a sub-agent."""
    AgentFactory(id="desk", name="Front desk", agents=[agent.pk])
    return agent


# --- One agent


def test_a_deleted_agent_is_in_the_trash(publisher, agent):
    publisher.post(reverse("agents:delete", args=[agent.pk]), {"typed": "Concierge"})

    assert DeletedAgent.objects.get().agent_key == agent.pk


def test_the_toast_of_a_deletion_has_an_undo(publisher, agent):
    answer = publisher.post(reverse("agents:delete", args=[agent.pk]), {"typed": "Concierge"}, follow=True)
    undo = reverse("agents:undo_delete", args=[DeletedAgent.objects.get().pk])

    assert f'action="{undo}"' in answer.content.decode()
    assert publisher.get(undo).status_code == 405
    restored = publisher.post(undo)
    assert restored.headers["Location"] == reverse("agents:edit", args=[agent.pk])
    assert Agent.objects.get(pk=agent.pk).name == "Concierge"


def test_an_undo_that_is_not_possible_shows_the_trash_with_the_reason(publisher, agent):
    publisher.post(reverse("agents:delete", args=[agent.pk]), {"typed": "Concierge"})
    AgentFactory(id=agent.pk, name="Another")
    undo = reverse("agents:undo_delete", args=[DeletedAgent.objects.get().pk])

    refused = publisher.post(undo, follow=True)

    assert refused.redirect_chain == [(reverse("agents:trash"), 302)]
    assert "Concierge was not restored. Another agent has the ID" in refused.content.decode()
    assert DeletedAgent.objects.exists()


def test_the_question_says_what_happens_to_runs(publisher, agent):
    html = publisher.get(reverse("agents:delete", args=[agent.pk])).content.decode()

    assert "Its runs and saved inputs are deleted now." in html
    assert "removed after 30 days" in html


def test_the_question_counts_the_versions(publisher, agent):
    question = reverse("agents:delete", args=[agent.pk])
    assert "is moved to the trash with its version, and" in publisher.get(question).content.decode()

    for text in ("One", "Two"):
        agent.edit({"description": text})
    agent.versions.get(version_number=2).delete()

    assert "is moved to the trash with all 2 versions, and" in publisher.get(question).content.decode()


def test_an_agent_in_use_needs_a_confirmation(publisher, used):
    address = reverse("agents:delete", args=[used.pk])

    refused = publisher.post(address, {"typed": "Concierge"})
    assert refused.status_code == 422
    assert "Other agents use this agent. Select this to delete it anyway." in refused.content.decode()
    assert used.pk in remaining()

    assert publisher.post(address, {"typed": "Concierge", "confirmed": "on"}).status_code == 302
    assert remaining() == {"desk"}


# --- Several agents


def test_the_number_of_agents_is_typed(publisher):
    agents = [AgentFactory() for _ in range(3)]

    question = delete_selected(publisher, agents, sure=None).content.decode()
    refused = [delete_selected(publisher, agents, typed=typed) for typed in ("", "delete", "delete 2 agents")]

    assert "Delete 3 agents?" in question
    assert "Type “delete 3 agents” to confirm" in question
    assert {answer.status_code for answer in refused} == {422}
    assert len(remaining()) == 3
    assert delete_selected(publisher, agents, typed=" delete 3  agents").status_code == 200
    assert remaining() == set()


def test_agents_in_use_are_named_and_left_out(publisher, used):
    free = AgentFactory(name="Porter")

    question = delete_selected(publisher, [used, free], sure=None).content.decode()
    answer = delete_selected(publisher, [used, free], typed="delete 1 agent")

    assert "Front desk" in question
    assert "Type “delete 1 agent” to confirm" in question
    assert [(result.done, result.sentence) for result in answer.context["results"]] == [
        (False, "Left out: it is a sub-agent of 'desk'."),
        (True, "Moved to the trash."),
    ]
    assert remaining() == {used.pk, "desk"}


def test_confirmed_agents_in_use_are_deleted(publisher, used):
    free = AgentFactory()
    sent = {"confirmed": [used.pk], "typed": "delete 2 agents"}

    assert delete_selected(publisher, [used, free], **{**sent, "typed": "delete 1 agent"}).status_code == 422
    assert delete_selected(publisher, [used, free], **sent).status_code == 200
    assert remaining() == {"desk"}


def test_agents_that_use_each_other_are_deleted_together(publisher, used):
    parent = Agent.objects.get(pk="desk")

    question = delete_selected(publisher, [used, parent], sure=None).content.decode()
    answer = delete_selected(publisher, [used, parent], typed="delete 2 agents")

    assert "Other agents use" not in question
    assert [result.done for result in answer.context["results"]] == [True, True]


def test_an_agent_stays_with_a_selected_one_that_stays(publisher, used):
    parent = Agent.objects.get(pk="desk")
    AgentFactory(id="lobby", agents=["desk"])

    question = delete_selected(publisher, [used, parent], sure=None)
    refused = delete_selected(publisher, [used, parent], typed="delete 1 agent")

    assert [agent.pk for agent, _ in question.context["selection"].used] == [used.pk, "desk"]
    assert refused.status_code == 422
    assert "No agent is selected." in refused.content.decode()
    assert delete_selected(publisher, [used, parent], confirmed=["desk"], typed="delete 2 agents").status_code == 200
    assert remaining() == {"lobby"}


def test_the_question_takes_a_constant_number_of_queries(publisher):
    AgentFactory(id="a-0", name="First")
    agents = [AgentFactory(id=f"a-{number + 1}", agents=[f"a-{number}"]) for number in range(24)]

    def count_queries(number):
        with CaptureQueriesContext(connection) as queries:
            question = delete_selected(publisher, agents[:number], sure=None)
        assert len(question.context["selection"].used) == number  # each uses the one before, and the last one is used
        return len(queries)

    count_queries(1)  # fills the caches
    assert count_queries(20) == count_queries(10)


def test_an_agent_that_came_into_use_meanwhile_is_left_out(publisher, agent, monkeypatch):
    describe = "agents_app.views.bulk.bulk.describe_selection"
    before = delete_selected(publisher, [agent], sure=None).context["selection"]
    AgentFactory(id="desk", agents=[agent.pk])
    monkeypatch.setattr(describe, lambda *arguments: before)

    answer = delete_selected(publisher, [agent], typed="delete 1 agent")

    assert not answer.context["results"][0].done
    assert agent.pk in remaining()


def test_hidden_dependents_are_counted(agent):
    AgentFactory(owner_id="newsroom", name="Secret", agents=[agent.pk])
    client = browser(member(Role.PUBLISHER))

    question = delete_selected(client, [agent], sure=None).content.decode()

    assert "1 that you may not see" in question
    assert "Secret" not in question


def test_agents_without_the_role_are_left_out_of_the_number(agent):
    person = member(Role.PUBLISHER)
    MembershipFactory(user=person, owner_id="newsroom", role=Role.EDITOR)
    theirs = AgentFactory(owner_id="newsroom", name="Sub-editor")
    hidden = AgentFactory(owner_id="elsewhere", name="Secret")

    question = delete_selected(browser(person), [agent, theirs, hidden], sure=None).content.decode()

    assert "Type “delete 1 agent” to confirm" in question
    assert 'you need the Publisher role in the team: <span dir="auto">Sub-editor</span>.' in question
    assert "Secret" not in question
