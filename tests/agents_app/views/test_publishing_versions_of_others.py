"""The question before an editor publishes a draft that has versions of other people."""

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.models import Agent
from tests.factories import AgentFactory, member
from tests.page_client import browser, editor_form

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def tom(db):
    return browser(member(Role.EDITOR, username="tom"))


def address(agent):
    return reverse("agents:edit", args=[agent.pk])


def review(client, agent, **changed):
    return client.post(reverse("versions:review", args=[agent.pk]), editor_form(agent, **changed)).content.decode()


def live_number(agent):
    return Agent.objects.with_versions().get(pk=agent.pk).active_version.version_number


@pytest.fixture
def shared_draft(agent, tom):
    """Return an agent with two draft versions by tom."""
    tom.post(address(agent), editor_form(agent, publish="no", name="Porter", message="A better name"))
    tom.post(address(agent), editor_form(Agent.objects.get(pk=agent.pk), publish="no", description="At the door."))
    return Agent.objects.get(pk=agent.pk)


def test_the_button_says_whose_versions_it_publishes(publisher, tom, shared_draft):
    assert "Publish v4, with 2 versions by tom</button>" in review(publisher, shared_draft, instructions="Mine")
    assert "Publish v3, with 2 versions by tom</button>" in review(publisher, shared_draft)
    assert "includes" in review(publisher, shared_draft)


def test_a_draft_of_ones_own_is_published_without_a_question(publisher, agent):
    publisher.post(address(agent), editor_form(agent, publish="no", name="Porter"))
    agent = Agent.objects.get(pk=agent.pk)

    assert "Publish v3</button>" in review(publisher, agent, description="Mine")
    publisher.post(address(agent), editor_form(agent, publish="yes", description="Mine"))

    assert live_number(agent) == 3


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "dialog"])
def test_versions_of_others_are_published_after_a_question(publisher, shared_draft, headers):
    agent = shared_draft
    sent = editor_form(agent, publish="yes", instructions="Mine", message="Ready")
    AgentFactory(name="Caller", agents=[agent.pk])

    question = publisher.post(address(agent), sent, headers=headers)
    html = question.content.decode()

    assert question.status_code == 200
    assert live_number(agent) == 1
    for text in ("Publish v4 with versions of others?", "Live now", "A better name", "Caller", "Ready"):
        assert text in html
    assert "Publish v4, with 2 versions by tom</button>" in html
    assert question.headers.get("HX-Retarget") == ("#dialogs" if headers else None)

    publisher.post(address(agent), {**sent, "confirmed": "yes"}, headers=headers)
    agent = Agent.objects.with_versions().get(pk=agent.pk)
    assert agent.active_version.version_number == 4
    assert agent.active_version.change_message == "Ready"
    assert (agent.name, agent.instructions) == ("Porter", "Mine")


def test_the_page_of_the_question_posts_all_fields_again(publisher, shared_draft):
    changes = {"instructions": "Mine\n\n  two  \n", "tools": ["calculator", "word-count"]}
    sent = editor_form(shared_draft, publish="yes", **changes)

    page = publisher.post(address(shared_draft), sent)
    fields: dict = {}
    for name, value in page.context["posted_fields"]:
        fields.setdefault(name, []).append(value)
    publisher.post(address(shared_draft), {**fields, "publish": "yes", "confirmed": "yes"})

    agent = Agent.objects.get(pk=shared_draft.pk)
    assert agent.instructions == "Mine\n\n  two  \n"
    assert agent.tools == ["calculator", "word-count"]


def test_a_confirmed_publication_is_refused_if_somebody_saved_after_the_question(publisher, tom, shared_draft):
    sent = editor_form(shared_draft, publish="yes", instructions="Mine")
    publisher.post(address(shared_draft), sent)
    tom.post(address(shared_draft), editor_form(shared_draft, publish="no", description="Later"))

    answer = publisher.post(address(shared_draft), {**sent, "confirmed": "yes"})

    assert answer.status_code == 409
    assert live_number(shared_draft) == 1


def test_publishing_on_top_of_a_version_of_somebody_asks_too(publisher, tom, agent):
    mine = editor_form(agent, publish="yes", instructions="Mine")
    tom.post(address(agent), editor_form(agent, publish="no", description="Theirs"))
    row = Agent.objects.get(pk=agent.pk)
    sent = {**mine, "keep_on": f"{row.head_version_id} {row.active_version_id} yes"}

    question = publisher.post(address(agent), sent)
    assert "Publish v3, with 1 version by tom</button>" in question.content.decode()
    publisher.post(address(agent), {**sent, "keep_on": question.context["keep_on"], "confirmed": "yes"})

    assert live_number(agent) == 3


def test_an_editor_is_not_offered_to_publish(editor, agent):
    html = review(editor, agent, name="Porter")

    assert "Save draft</button>" in html
    assert 'value="yes"' not in html.partition('id="review"')[2]
    assert "Publisher role" in html
