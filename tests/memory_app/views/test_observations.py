"""Observations on the pages of a thread and of a run."""

import pytest
from django.urls import reverse

from memory_app.admin import observations, oldest_first
from memory_app.history.messages import append_messages
from memory_app.history.wire_messages import parse_wire_message
from memory_app.models import Observation, Thread
from memory_app.observational.limits import observational_options_of_agent
from runs_app.models import AgentRun
from tests.factories import AgentFactory, UserFactory, member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

NOTES = "Ann likes tea and long walks."
MEMORY = {"options": {}, "observationalMemory": {"observation": {"messageTokens": 400}}}


@pytest.fixture
def user():
    return member("publisher")


@pytest.fixture
def thread(user):
    agent = AgentFactory(id="concierge", memory=MEMORY)
    return add_thread(user, "t", f"u{user.pk}", agent=agent, agent_key=agent.pk)


@pytest.fixture
def observation(thread):
    return Observation.objects.create(thread=thread, first=1, last=2, text=NOTES, tokens=8, message_tokens=20)


def open_page(client, user, url):
    client.force_login(user)
    return client.get(url)


def test_the_page_of_a_thread_shows_its_window_and_what_each_observation_covers(client, user, observation):
    page = open_page(client, user, reverse("threads:view", args=["t"])).content.decode()

    assert "Messages 1 to 2" in page
    assert "waiting" in page
    assert NOTES in page
    assert "of 400 tokens" in page
    assert 'id="window-title"' not in page  # the gauges beside the observations show it
    assert "?message=2#message-2" in page


def test_the_link_of_an_observation_leads_to_the_whole_answer(client, user, thread, observation):
    """The rows of an answer with a call are one message of the page."""
    call = {"toolCallId": "c", "toolName": "t", "args": {}, "state": "result", "result": 1}
    parts = [{"type": "tool-invocation", "toolInvocation": call}, {"type": "text", "text": "Done"}]
    append_messages(thread, parse_wire_message({"role": "assistant", "content": parts}, "message"))
    Observation.objects.create(thread=thread, first=3, last=5, text=NOTES, tokens=8, message_tokens=20)

    page = open_page(client, user, reverse("threads:view", args=["t"])).content.decode()

    assert "?message=3#message-3" in page
    assert 'id="message-3"' in page


def test_an_agent_without_observations_has_no_section(client, user):
    add_thread(user, "plain", f"u{user.pk}")

    assert b"Observations" not in open_page(client, user, reverse("threads:view", args=["plain"])).content


def test_the_page_of_a_run_shows_the_observations_that_it_was_given(client, user, thread, observation):
    remembered = {"messages": 1, "observations": {"ids": [observation.pk], "last": 2}}
    run = RunFactory(requested_by=user, thread=thread, remembered=remembered)

    page = open_page(client, user, reverse("runs:view", args=[run.pk])).content.decode()

    assert "of the messages up to number 2" in page
    assert NOTES in page


def test_the_admin_has_figures_without_texts_and_observes_again(client, thread, observation):
    staff = UserFactory(is_staff=True, is_superuser=True)
    url = reverse("admin:memory_app_observation_changelist")
    rows = open_page(client, staff, url).content.decode()
    assert NOTES not in rows
    # The thread is a column. Its number in the database would look like a number of messages.
    assert f">messages {observation.first} to {observation.last}</a>" in rows
    detail = open_page(client, staff, reverse("admin:memory_app_observation_change", args=[observation.pk]))
    assert NOTES not in detail.content.decode()

    page = client.post(url, {"action": "observe_again", "_selected_action": [observation.pk]}, follow=True)

    assert "1 conversation is observed again." in page.content.decode()
    assert not Observation.objects.exists()
    assert not AgentRun.objects.exists()


def test_a_conversation_that_is_deleted_meanwhile_keeps_back_no_other(client, user, thread, observation, monkeypatch):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    other = add_thread(user, "other", f"u{user.pk}", agent=thread.agent, agent_key=thread.agent_key)
    second = Observation.objects.create(thread=other, first=1, last=2, text=NOTES, tokens=8, message_tokens=20)

    def options_of_agent_and_deletion(agent):
        Thread.objects.filter(pk=other.pk).delete()
        return observational_options_of_agent(agent)

    monkeypatch.setattr(observations, "observational_options_of_agent", options_of_agent_and_deletion)
    selected = {"action": "observe_again", "_selected_action": [observation.pk, second.pk]}

    page = client.post(reverse("admin:memory_app_observation_changelist"), selected, follow=True)

    assert "1 conversation is observed again." in page.content.decode()
    assert not Observation.objects.exists()


def test_the_admin_says_how_many_conversations_one_action_leaves(client, user, thread, observation, monkeypatch):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    monkeypatch.setattr(oldest_first, "MAX_CONVERSATIONS", 1)
    plain = add_thread(user, "plain", f"u{user.pk}", agent=AgentFactory(memory=None))
    threads = [add_thread(user, key, f"u{user.pk}", agent=thread.agent) for key in ("second", "third")]
    for observed in (plain, *threads):
        Observation.objects.create(thread=observed, first=1, last=2, text=NOTES, tokens=8, message_tokens=20)
    selected = {"action": "observe_again", "_selected_action": [*Observation.objects.values_list("pk", flat=True)]}

    page = client.post(reverse("admin:memory_app_observation_changelist"), selected, follow=True).content.decode()

    assert "Repeat it for the other 2." in page
    assert "1 conversation is observed again." in page
    assert "1 stay as they are" in page
    assert {*Observation.objects.values_list("thread", flat=True)} == {plain.pk, *(left.pk for left in threads)}
