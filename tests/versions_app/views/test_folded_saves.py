"""Consecutive saves of one person within ten minutes, which the history shows as one row."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from access_app.role import Role
from agents_app.editing.change_context import Source, change
from agents_app.models import Agent
from tests.factories import AgentFactory, member
from tests.history_pages import act, page, version
from tests.page_client import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return member(Role.PUBLISHER, username="ann")


@pytest.fixture
def agent():
    return AgentFactory()


@pytest.fixture
def client(ann):
    return browser(ann)


def save(agent, user, minutes, **fields):
    """Save the agent so many minutes ago as a draft of the user."""
    time = timezone.now() - timedelta(minutes=minutes)
    with change(actor=user, source=Source.PAGE, publish=False, at=time):
        return Agent.objects.get(pk=agent.pk).edit(fields)


def rows(response):
    """Return the versions that are listed, and the text of each row."""
    items = re.findall(r'<li class="timeline-item" id="version-(\d+)".*?</li>', response.content.decode(), re.DOTALL)
    return [int(number) for number in items]


def words(response):
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_saves_within_ten_minutes_are_one_row_with_all_their_changes(client, ann, agent):
    save(agent, ann, 9, instructions="Greet guests.\nAnswer briefly.\nBe kind.")
    save(agent, ann, 8, tools=["calculator"])
    save(agent, ann, 1, memory="last-messages")

    response = page(client, "list", agent)

    assert rows(response) == [4, 1]
    assert "2 entries" in words(response)
    assert "v4 Draft 3 saves Instructions +1 · Tools +calculator · Memory none → last-messages" in words(response)


def test_a_row_opens_to_show_each_save(client, ann, agent):
    for minute in (9, 8, 1):
        save(agent, ann, minute, description=str(minute))

    assert 'href="?unfold=4#saves-4"' in page(client, "list", agent).content.decode()
    response = page(client, "list", agent, unfold="4")

    assert rows(response) == [4, 3, 2, 1]
    assert 'id="saves-4"' in response.content.decode()
    assert "3 saves" not in words(response)


def test_longer_series_are_several_rows(client, ann, agent):
    for minute in (24, 18, 12, 6, 1):
        save(agent, ann, minute, description=str(minute))

    assert rows(page(client, "list", agent)) == [6, 4, 2, 1]


@pytest.mark.parametrize("described", [{"name": "Softer"}, {"change_message": "As agreed"}, {"pinned": True}])
def test_what_a_person_described_is_a_row_of_its_own(client, ann, agent, described):
    for minute in (3, 2, 1):
        save(agent, ann, minute, description=str(minute))
    version(agent, 3).update_description(**described)

    assert rows(page(client, "list", agent)) == [4, 3, 1]


def test_saves_of_others_and_through_other_interfaces_are_rows_of_their_own(client, ann, agent):
    save(agent, ann, 4, description="1")
    save(agent, member(Role.EDITOR, username="bob"), 3, description="2")
    save(agent, ann, 2, description="3")
    with change(actor=ann, source=Source.API, publish=False):
        Agent.objects.get(pk=agent.pk).edit({"description": "4"})

    assert rows(page(client, "list", agent)) == [5, 4, 3, 2, 1]


def test_saves_without_a_person_are_not_folded(client, agent):
    for number in range(3):
        save(agent, None, 2, description=str(number))

    assert rows(page(client, "list", agent)) == [4, 3, 2, 1]


def test_live_is_always_visible(client, ann, agent):
    for minute in (4, 3, 2, 1):
        save(agent, ann, minute, description=str(minute))
    act(client, "activate", agent, 3)

    assert rows(page(client, "list", agent)) == [5, 3, 1]


def test_a_filter_shows_every_match(client, ann, agent):
    for minute in (3, 2, 1):
        save(agent, ann, minute, description=str(minute))

    assert rows(page(client, "list", agent, author="ann")) == [4, 3, 2]


def test_a_row_whose_saves_cancel_each_other_out_says_so(client, ann, agent):
    save(agent, ann, 3, description="On")
    save(agent, ann, 2, description="")

    assert "2 saves Same as v1" in words(page(client, "list", agent))


def test_pages_are_counted_in_rows(client, ann, agent):
    for number in range(30):
        save(agent, ann, 60 - number, description=str(number))

    response = page(client, "list", agent)

    assert len(rows(response)) < 20
    assert "Page 1 of" not in words(response)


def test_the_queries_do_not_grow_with_the_saves(client, ann, agent, django_assert_max_num_queries):
    for number in range(40):
        save(agent, ann, 60 - number, description=str(number))

    with django_assert_max_num_queries(12):
        page(client, "list", agent)
    with django_assert_max_num_queries(12):
        page(client, "list", agent, unfold="41")
