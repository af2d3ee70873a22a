"""The page of the people who take part in a thread: added, changed and removed by its user alone."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memory_app.models import Participant
from tests.factories import AgentFactory, member
from tests.memory_app.conftest import add_thread
from tests.page_client import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return member("editor", "support", username="ann")


@pytest.fixture
def bo():
    return member("viewer", "support", username="bo", first_name="Bo", last_name="Berg")


@pytest.fixture
def thread(ann):
    agent = AgentFactory(id="concierge", name="Concierge", owner_id="support")
    return add_thread(ann, agent=agent, agent_key=agent.pk)


def address(thread, name="participants", *arguments):
    return reverse(f"threads:{name}", args=[thread.key, *arguments])


def test_a_member_of_the_team_is_added_changed_and_removed(ann, bo, thread):
    client = browser(ann)
    page = client.get(address(thread, "view")).content.decode()
    assert address(thread) in page
    assert "Bo Berg (bo)" in client.get(address(thread)).content.decode()

    client.post(address(thread), {"member": bo.pk, "functional_role": "reviewer"})
    assert [*Participant.objects.values_list("thread", "user", "name", "functional_role")] == [
        (thread.pk, bo.pk, "bo", "reviewer")
    ]
    client.post(address(thread), {"member": bo.pk, "name": "Bo"})
    assert [*Participant.objects.values_list("name", "functional_role")] == [("Bo", "reviewer")]
    assert "Bo, reviewer" in client.get(address(thread, "view")).content.decode()

    assert client.post(address(thread, "remove-participant", bo.pk)).status_code == 302
    assert not Participant.objects.exists()
    assert client.post(address(thread, "remove-participant", bo.pk)).status_code == 404


def test_a_thread_is_listed_once_for_its_owner_and_for_each_participant(ann, bo, thread):
    others = [bo, *(member("viewer", "support") for _ in range(3))]
    for user in others:
        Participant.objects.create(thread=thread, user=user, name=user.username)

    with CaptureQueriesContext(connection) as queries:
        lists = [browser(user).get(reverse("threads:list")) for user in (ann, *others)]

    assert [[row.thread for row in answer.context["rows"]] for answer in lists] == [[thread]] * 5
    # DISTINCT compares all columns of all rows, which took a second for 200,000 threads.
    assert not [query["sql"] for query in queries if "DISTINCT" in query["sql"]]


def test_the_page_leads_back_to_the_conversation_and_to_all(ann, thread):
    page = browser(ann).get(address(thread)).content.decode()

    (crumbs,) = re.findall(r'<nav class="crumbs".*?</nav>', page)
    assert re.findall('href="([^"]*)"', crumbs) == [reverse("threads:list"), address(thread, "view")]


def test_somebody_outside_the_team_is_refused(ann, bo, thread):
    stranger = member("editor", "sales")
    response = browser(ann).post(address(thread), {"member": stranger.pk})

    assert response.status_code == 422
    assert "Choose an active member of the agent&#x27;s team." in response.content.decode()
    assert not Participant.objects.exists()


def test_a_participant_and_a_publisher_change_nothing(bo, thread):
    Participant.objects.create(thread=thread, user=bo, name="Bo")
    for client in (browser(bo), browser(member("publisher", "support"))):
        query = f"?realm={thread.realm}"
        assert address(thread) not in client.get(address(thread, "view") + query).content.decode()
        assert client.get(address(thread) + query).status_code == 404
        assert client.post(address(thread) + query, {"member": bo.pk}).status_code == 404
        assert client.post(address(thread, "remove-participant", bo.pk) + query).status_code == 404


def test_a_thread_without_an_agent_has_nobody_to_add(ann):
    page = browser(ann).get(address(add_thread(ann))).content.decode()

    assert "No participants yet" in page
    assert "This conversation has no agent." in page
