"""The list of agents in Django admin: filters, links and duplicating."""

import html
import re

import pytest
from django.urls import reverse

from agents_app.admin.agents import AgentAdmin
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory, UserFactory, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/agents_app/agent/"


@pytest.fixture
def staff(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))


def duplicate(client, agent, **fields):
    address = reverse("admin:agents_app_agent_duplicate", args=[agent.pk])
    return client.post(address, {"id": "copy", "name": "Concierge", "owner_id": "", **fields})


def test_a_duplicate_begins_with_the_live_version(client, staff):
    agent = AgentFactory(id="porter")
    with change(publish=False):
        agent.edit({"name": "Draft"})

    duplicate(client, agent)

    copy = Agent.objects.get(pk="copy")
    assert (copy.name, copy.versions.get().change_message) == ("Concierge", "Duplicated from porter version 1")


def test_a_duplicate_with_a_taken_id_is_refused(client, staff):
    agent = AgentFactory(id="porter")

    answer = duplicate(client, agent, id="porter")

    assert b"The ID porter is already taken." in answer.content


def test_duplicating_into_another_owner_is_refused(client):
    client.force_login(member("editor", "north", is_staff=True))
    agent = AgentFactory(owner_id="north")

    duplicate(client, agent, owner_id="south")
    duplicate(client, agent, id="second", owner_id="north")

    assert set(Agent.objects.values_list("pk", flat=True)) == {agent.pk, "second"}


def test_an_agent_of_another_owner_cannot_be_duplicated(client):
    client.force_login(member("editor", "north", is_staff=True))

    assert duplicate(client, AgentFactory(owner_id="south"), owner_id="north").status_code == 404


def test_viewers_cannot_duplicate(client):
    client.force_login(member("viewer", is_staff=True))

    duplicate(client, AgentFactory())

    assert Agent.objects.count() == 1


def test_the_list_filters_agents_with_a_draft(client, staff):
    AgentFactory(id="without")
    with change(publish=False):
        AgentFactory(id="with-draft").edit({"name": "Draft"})

    page = client.get(f"{LIST}?draft=yes").content.decode()

    assert "with-draft" in page
    assert "without" not in page


def test_the_owner_filter_names_visible_owners_only(client):
    AgentFactory(owner_id="north")
    AgentFactory(owner_id="south-secret")
    client.force_login(member("viewer", "north", is_staff=True))

    page = client.get(LIST).content.decode()

    assert "north" in page
    assert "south-secret" not in page


def test_an_agent_links_to_its_page(client, staff):
    AgentFactory(id="porter")

    assert reverse("agents:edit", args=["porter"]) in client.get(LIST).content.decode()


@pytest.mark.parametrize("word", ["porter-7", "Night porter", "by the door", "Opens at six"])
def test_agents_are_found_by_their_content(client, staff, word):
    AgentFactory(id="porter-7", name="Night porter", description="Stands by the door.", instructions="Opens at six.")
    AgentFactory(id="cook-1", name="Cook", description="", instructions="Fry.")

    page = client.get(LIST, {"q": word}).content.decode()

    assert ("porter-7" in page, "cook-1" in page) == (True, False)


def test_the_list_filters_agents_by_owner(client, staff):
    AgentFactory(id="northern", owner_id="north")
    AgentFactory(id="shared", owner_id="")

    pages = [client.get(LIST, {"owner": owner}).content.decode() for owner in ("=north", "=")]

    assert [("/northern/change/" in page, "/shared/change/" in page) for page in pages] == [
        (True, False),
        (False, True),
    ]


def test_an_agent_links_to_its_versions_and_activations(client, staff):
    mine, other = AgentFactory(id="porter"), AgentFactory(id="other")
    mine.edit({"name": "Porter"})
    page = client.get(reverse("admin:agents_app_agent_change", args=["porter"])).content.decode()

    links = [html.unescape(link) for link in re.findall(r'href="(/admin/versions_app/[^"]+)"', page) if "?" in link]
    lists = [client.get(link).content.decode() for link in links]

    assert len(lists) == 2
    assert [str(other.active_version) in content for content in lists] == [False, False]
    assert "2 versions" in lists[0]
    assert "v1\u00a0→\u00a0v2" in lists[1]


@pytest.mark.parametrize(
    "query",
    ["name__regex=(", "updated_at__regex=(", "updated_at__year=x", "q=%00", f"updated_at__year={10**20}", "owner=%00"],
)
def test_invalid_filters_are_no_server_error(client, staff, query):
    AgentFactory()
    client.raise_request_exception = False

    assert client.get(f"{LIST}?{query}").status_code in (200, 302, 400)


def test_a_number_out_of_range_is_no_server_error(admin_client):
    admin_client.raise_request_exception = False

    # SQLite cannot store such a number, and the list is shown without the filter. PostgreSQL can and finds nothing.
    address = f"/admin/tools_app/acppermission/?agent__id__exact={10**20}"
    assert admin_client.get(address).status_code in {200, 302}


def test_the_delete_page_counts_related_objects(client, staff):
    agent = AgentFactory(id="porter")
    agent.edit({"name": "Porter"})
    RunFactory(agent=agent)

    page = client.get(reverse("admin:agents_app_agent_delete", args=[agent.pk])).content.decode()

    assert [line in page for line in ("Versions: 2", "Live history: 2", "Runs: 1", "porter v1")] == [True] * 3 + [
        False
    ]


def test_discarding_a_draft_of_a_deleted_agent_is_not_found(client, staff, monkeypatch):
    agent = AgentFactory()

    def delete_meanwhile(*arguments):
        Agent.objects.all().delete()
        return True

    monkeypatch.setattr(AgentAdmin, "has_change_permission", delete_meanwhile)

    assert client.post(reverse("admin:agents_app_agent_discard_draft", args=[agent.pk])).status_code == 404


@pytest.mark.parametrize(
    ("role", "actions"),
    [
        ("viewer", ["Open"]),
        ("editor", ["Open", "Duplicate", "Save version", "Discard draft"]),
        ("publisher", ["Open", "Duplicate", "Save version", "Discard draft", "Archive"]),
    ],
)
def test_only_actions_of_the_role_are_offered(client, role, actions):
    client.force_login(member(role, "north", is_staff=True))
    agent = AgentFactory(owner_id="north")
    with change(publish=False):
        agent.edit({"name": "Draft"})

    column = re.search(r'field-page">(.*?)</td>', client.get(LIST).content.decode(), re.DOTALL)[1]

    assert re.findall(r">([^<>]+)</a>", column) == actions
    for address in re.findall(r'href="([^"]+)"', column):
        assert client.get(address).status_code == 200


@pytest.mark.parametrize(
    ("role", "model", "is_offered"),
    [
        ("viewer", "agents_app/agent", False),
        ("editor", "agents_app/agent", True),
        ("publisher", "tools_app/mcpserver", False),
        ("manager", "tools_app/mcpserver", True),
    ],
)
def test_adding_is_offered_to_those_who_may_add(client, role, model, is_offered):
    client.force_login(member(role, "north", is_staff=True))
    address = f"/admin/{model}/add/"

    pages = [client.get(page).content.decode() for page in ("/admin/", f"/admin/{model}/")]

    assert [address in page for page in pages] == [is_offered] * 2
    assert client.get(address).status_code == (200 if is_offered else 403)
