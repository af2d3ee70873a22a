"""The page with the agents that use an agent as a sub-agent."""

import re

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from access_app.models import Membership
from access_app.role import Role
from agents_app.editing.archiving import archive_locked
from agents_app.models import Agent
from tests.factories import AgentFactory, member
from tests.history_pages import edit
from tests.page_client import browser


def page(client, agent, **query):
    return client.get(reverse("agents:used_by", args=[agent.pk]), query)


def words(response):
    html = response.content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", html[html.index('<div class="page') :]).split())


def test_dependents_are_listed_with_links_and_the_version_that_uses_the_agent(viewer, agent):
    live = AgentFactory(id="front-desk", name="Front desk", agents=[agent.pk])
    draft = AgentFactory(id="concert-hall", name="Concert hall")
    edit(draft, publish=False, agents=[agent.pk])
    AgentFactory(id="stranger", name="Stranger")

    response = page(viewer, agent)

    text = words(response)
    assert "Concert hall concert-hall Shared Draft Front desk front-desk Shared Live" in text
    assert "Stranger" not in text
    for dependent in (live, draft):
        assert f'href="{reverse("agents:edit", args=[dependent.pk])}"' in response.content.decode()


def test_dependents_that_the_user_may_not_see_are_only_counted(agent):
    AgentFactory(owner_id="newsroom", name="Secret desk", agents=[agent.pk])
    AgentFactory(owner_id="newsroom", name="Second secret", agents=[agent.pk])
    support = member(Role.VIEWER, "support")
    Membership.objects.create(user=support, owner_id="", role=Role.VIEWER)
    client = browser(support)

    text = words(page(client, agent))
    assert "Secret" not in text
    assert "2 agents use it in teams that you are not a member of." in text

    AgentFactory(owner_id="support", name="Help desk", agents=[agent.pk])
    text = words(page(client, agent))
    assert "Help desk" in text
    assert "2 more agents use it in teams that you are not a member of." in text


def test_without_dependents_the_page_says_how_to_go_on(viewer, agent):
    response = page(viewer, agent)

    assert "No agent uses it To use it, add it under Sub-agents in the editor of another agent." in words(response)
    assert '<a class="button" href="/">Choose an agent</a>' in response.content.decode()


def test_an_archived_dependent_is_marked(viewer, agent):
    with transaction.atomic():
        archive_locked(Agent.objects.get_locked(AgentFactory(name="Old desk", agents=[agent.pk]).pk))

    assert "Old desk Archived" in words(page(viewer, agent))


def test_pages_of_dependents_take_a_fixed_number_of_queries(viewer, agent):
    def count_queries():
        with CaptureQueriesContext(connection) as queries:
            assert page(viewer, agent).status_code == 200
        return len(queries)

    for _ in range(2):
        AgentFactory(agents=[agent.pk])
    few = count_queries()
    for _ in range(60):
        AgentFactory(agents=[agent.pk])

    assert count_queries() == few
    assert "Page 2 of 2" in words(page(viewer, agent, page="2"))
