"""Publishing drafts from the list of agents in Django admin."""

import re
from html import unescape

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse

from agents_app.editing import bulk
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, UserFactory, member

pytestmark = pytest.mark.django_db

LIST = reverse("admin:agents_app_agent_changelist")


@pytest.fixture
def staff(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))


def with_draft(agent_id, **fields):
    agent = AgentFactory(id=agent_id, name=agent_id.title(), **fields)
    with change(publish=False, message="Kinder"):
        agent.edit({"instructions": "Be kind."})
    return agent


def choose_action(client, *agents):
    sent = {"action": "publish_drafts", "_selected_action": [agent.pk for agent in agents]}
    return client.post(LIST, sent)


def confirm(client, page, **more):
    """Submit the form of the confirmation page."""
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.content.decode())
    sent = {}
    for name, value in fields:
        sent.setdefault(name, []).append(unescape(value))
    return client.post(LIST, {**sent, "confirmed": "Publish", **more})


def messages(answer):
    return [str(message) for message in get_messages(answer.wsgi_request)]


def live():
    rows = Agent.objects.order_by("pk").values_list("pk", "active_version__version_number")
    return dict(rows)


def test_the_confirmation_shows_the_drafts_first(client, staff):
    page = choose_action(client, with_draft("porter"), with_draft("guide"), AgentFactory(id="calm"))

    text = " ".join(re.sub(r"<[^>]+>", "", page.content.decode()).split())
    assert "Publish 2 drafts" in text
    assert "Porter: v1 → v2, Kinder" in text
    assert "1 of the selected agents has no draft" in text
    assert set(live().values()) == {1}


def test_confirming_publishes_the_drafts_with_the_reason(client, staff):
    agent = with_draft("porter")

    answer = confirm(client, choose_action(client, agent, with_draft("guide")), reason="Opening day")

    assert messages(answer) == ["Published 2 drafts."]
    assert live() == {"porter": 2, "guide": 2}
    assert agent.activations.latest("pk").reason == "Opening day"
    assert agent.versions.count() == 2


def test_without_drafts_there_is_no_confirmation(client, staff):
    answer = choose_action(client, AgentFactory())

    assert answer.status_code == 302
    assert messages(answer) == ["None of the selected agents has a draft that you can publish."]


def test_a_draft_changed_after_the_confirmation_is_skipped(client, staff):
    moved = with_draft("porter")
    page = choose_action(client, moved, with_draft("guide"))
    with change(publish=False):
        moved.edit({"instructions": "Something else."})

    answer = confirm(client, page)

    assert messages(answer) == [
        "Published 1 draft.",
        "Porter: The live version or the draft changed since you confirmed.",
    ]
    assert live() == {"porter": 1, "guide": 2}


def test_a_draft_published_after_the_confirmation_is_skipped(client, staff):
    agent = with_draft("porter")
    page = choose_action(client, agent)
    Agent.objects.get(pk="porter").head_version.activate()

    assert messages(confirm(client, page)) == ["Published 0 drafts.", "Porter: It has no draft."]
    assert agent.activations.count() == 2


def test_an_agent_deleted_after_the_confirmation_is_skipped(client, staff, monkeypatch):
    page = choose_action(client, with_draft("porter"), with_draft("guide"))
    apply_to_each = bulk.apply_to_each

    def delete_one(*arguments):
        Agent.objects.filter(pk="guide").delete()
        return apply_to_each(*arguments)

    monkeypatch.setattr(bulk, "apply_to_each", delete_one)

    assert messages(confirm(client, page)) == ["Published 1 draft.", "guide: It is no longer there."]
    assert live() == {"porter": 2}


def test_only_publishers_may_publish_drafts(client):
    user = member("editor", "north", is_staff=True)
    MembershipFactory(user=user, owner_id="south", role="publisher")
    client.force_login(user)
    agent = with_draft("porter", owner_id="north")

    assert messages(choose_action(client, agent)) == ["None of the selected agents has a draft that you can publish."]

    forged = {"draft": bulk.live_and_draft(Agent.objects.get()), "confirmed": "Publish"}
    answer = client.post(LIST, {"action": "publish_drafts", "_selected_action": [agent.pk], **forged})
    assert messages(answer)[-2] == "Published 0 drafts."
    assert "Publisher role" in messages(answer)[-1]
    assert live() == {"porter": 1}


def test_a_draft_with_circular_sub_agents_is_refused_with_the_path(client, staff):
    agent = AgentFactory(id="porter", name="Porter")
    with change(publish=False):
        agent.edit({"agents": ["helper"]})
    AgentFactory(id="helper", agents=["porter"])

    answer = confirm(client, choose_action(client, agent))

    assert messages(answer)[-1] == "Porter: This is a circular reference: porter → helper → porter."
    assert agent.activations.count() == 1


def test_too_many_selected_agents_are_refused(client, staff, monkeypatch):
    monkeypatch.setattr("agents_app.editing.bulk.MAX_SELECTED_AGENTS", 1)

    assert messages(choose_action(client, with_draft("porter"), with_draft("guide"))) == ["Select at most 1 agents."]
