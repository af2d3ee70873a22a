"""Deleting and archiving in Django admin, by the rule of the pages."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import WARNING, get_messages
from django.urls import reverse

from agents_app.editing.archiving import archive_locked
from agents_app.forms.actions import DeleteForm
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, UserFactory, archived_agent, member
from versions_app.models import DeletedAgent

pytestmark = pytest.mark.django_db

LIST = "/admin/agents_app/agent/"


@pytest.fixture
def staff(client):
    client.force_login(UserFactory(username="root", is_staff=True, is_superuser=True))


@pytest.fixture
def used():
    """Return an agent that another one uses as a sub-agent."""
    agent = AgentFactory(id="porter")
    AgentFactory(id="desk", name="Front desk", agents=["porter"])
    return agent


def run(client, action, agents, **sent):
    selected = [agent.pk for agent in agents]
    return client.post(LIST, {"action": action, "_selected_action": selected, **sent}, follow=True)


def remaining():
    return set(Agent.objects.values_list("pk", flat=True))


def delete_address(agent_id):
    return reverse("admin:agents_app_agent_delete", args=[agent_id])


# --- The button


def test_the_delete_page_needs_the_name(client, staff):
    AgentFactory(id="porter")

    question = client.get(delete_address("porter")).content
    assert b"stay in the trash for 30 days" in question
    assert b'value="Delete agent"' in question
    assert client.post(delete_address("porter"), {"post": "yes"}).status_code == 200
    assert client.post(delete_address("porter"), {"typed": "concierge"}).status_code == 200
    assert remaining() == {"porter"}
    client.post(delete_address("porter"), {"typed": "Concierge"})
    assert DeletedAgent.objects.get().agent_key == "porter"
    assert LogEntry.objects.get().change_message == "Deleted (Admin)."


def test_the_delete_page_names_dependents_and_needs_a_confirmation(client, staff, used):
    assert b"Front desk" in client.get(delete_address("porter")).content
    refused = client.post(delete_address("porter"), {"typed": "Concierge"})
    assert b"Select this to delete it anyway." in refused.content
    client.post(delete_address("porter"), {"typed": "Concierge", "confirmed": "on"})
    assert remaining() == {"desk"}


def test_deleting_an_agent_that_is_deleted_meanwhile_is_not_found(client, staff, monkeypatch):
    AgentFactory(id="porter")
    is_valid = DeleteForm.is_valid

    def delete_meanwhile(form):
        Agent.objects.all().delete()
        return is_valid(form)

    monkeypatch.setattr(DeleteForm, "is_valid", delete_meanwhile)

    assert client.post(delete_address("porter"), {"typed": "Concierge"}).status_code == 404


def test_editors_cannot_delete(client):
    AgentFactory(id="porter")
    client.force_login(member("editor", is_staff=True))

    assert client.post(delete_address("porter"), {"typed": "Concierge"}).status_code == 403
    assert client.get(delete_address("nobody")).status_code == 404


# --- The actions


def test_the_number_of_selected_agents_is_typed(client, staff):
    agents = [AgentFactory() for _ in range(3)]

    question = run(client, "delete_agents", agents).content.decode()
    run(client, "delete_agents", agents, confirmed="Delete", typed="yes")
    assert "Type “delete 3 agents” to confirm" in question
    assert len(remaining()) == 3

    answer = run(client, "delete_agents", agents, confirmed="Delete", typed="delete 3 agents")
    assert "Deleted 3 agents." in answer.content.decode()
    assert remaining() == set()


def test_selected_agents_in_use_are_named_and_left_out(client, staff, used):
    free = AgentFactory(id="free")
    sent = {"confirmed": "Delete", "typed": "delete 1 agent"}

    assert "Front desk" in run(client, "delete_agents", [used, free]).content.decode()
    answer = run(client, "delete_agents", [used, free], **sent).content.decode()
    assert "Left out: it is a sub-agent of &#x27;desk&#x27;." in answer
    assert remaining() == {"porter", "desk"}

    run(client, "delete_agents", [used], **sent, confirmed_agent=["porter"])
    assert remaining() == {"desk"}


@pytest.mark.parametrize("sent", [{"post": "yes"}, {"post": "yes", "confirmed": "Delete"}])
def test_the_action_of_django_does_not_exist(client, staff, used, sent):
    run(client, "delete_selected", [used], **sent)

    assert remaining() == {"porter", "desk"}


def test_agents_of_teams_without_the_role_are_left_out(client):
    person = member("publisher", "north", is_staff=True)
    MembershipFactory(user=person, owner_id="south", role="viewer")
    client.force_login(person)
    mine, theirs = AgentFactory(owner_id="north"), AgentFactory(owner_id="south", name="Southern")

    question = run(client, "delete_agents", [mine, theirs]).content.decode()
    run(client, "delete_agents", [mine, theirs], confirmed="Delete", typed="delete 1 agent")

    assert "you need the Publisher role in the team: Southern." in question
    assert remaining() == {theirs.pk}


def test_archived_agents_are_deleted_from_their_list(client, staff):
    archive_locked(AgentFactory(id="porter"))
    sent = {
        "action": "delete_agents",
        "_selected_action": ["porter"],
        "confirmed": "Delete",
        "typed": "delete 1 agent",
    }

    client.post(f"{LIST}?archived=yes", sent)

    assert remaining() == set()


# --- Archived agents


def test_agents_are_archived_and_unarchived(client, staff, used):
    free = AgentFactory(id="free")

    assert "Front desk" in run(client, "archive_agents", [used, free]).content.decode()
    run(client, "archive_agents", [used, free], confirmed="Archive")
    assert set(Agent.objects.archived().values_list("pk", flat=True)) == {"free"}

    client.post(f"{LIST}?archived=yes", {"action": "unarchive_agents", "_selected_action": ["free"]})
    assert not Agent.objects.archived().exists()


def test_an_agent_that_the_role_does_not_allow_to_unarchive_is_named_in_a_warning(client):
    user = member("editor", is_staff=True)
    MembershipFactory(user=user, owner_id="north", role="publisher")
    client.force_login(user)
    archived_agent("porter")

    answer = client.post(f"{LIST}?archived=yes", {"action": "unarchive_agents", "_selected_action": ["porter"]})

    assert [(message.level, str(message)) for message in get_messages(answer.wsgi_request)] == [
        (WARNING, "Unarchived 0 agents."),
        (WARNING, "Concierge: This needs the Publisher role in Shared."),
    ]


def test_a_message_of_the_admin_does_not_change_the_first_letter_of_a_name(client, staff):
    agent = AgentFactory(id="porter", name="iPorter")

    page = client.post(delete_address(agent.pk), {"typed": "iPorter"}, follow=True).content.decode()

    assert '<li class="success">iPorter was moved to the trash.</li>' in page


def test_the_list_leaves_out_archived_agents(client, staff):
    archive_locked(AgentFactory(id="archived-one"))
    AgentFactory(id="another")

    pages = [client.get(LIST, query).content.decode() for query in ({}, {"archived": "yes"}, {"archived": "all"})]

    listed = [("/archived-one/change/" in page, "/another/change/" in page) for page in pages]
    assert listed == [(False, True), (True, False), (True, True)]


def test_one_agent_is_archived_after_a_confirmation(client, staff, used):
    address = reverse("admin:agents_app_agent_archive", args=["porter"])

    assert "It is a sub-agent of &#x27;desk&#x27;" in client.get(address).content.decode()
    client.post(address)
    assert not Agent.objects.archived().exists()
    client.post(address, {"confirmed": "on"})
    assert Agent.objects.archived().get() == used
    client.post(reverse("admin:agents_app_agent_unarchive", args=["porter"]))
    assert not Agent.objects.archived().exists()


def test_an_archived_agent_is_read_only(client, staff):
    agent = AgentFactory(id="porter")
    archive_locked(agent)
    page = client.get(reverse("admin:agents_app_agent_change", args=["porter"])).content.decode()
    snapshot = client.post(reverse("admin:agents_app_agent_snapshot", args=["porter"]), {"name": "x"})
    version = {"action": "restore", "_selected_action": [agent.head_version_id], "confirmed": "yes"}
    pointers = {"live": agent.active_version_id, "head": agent.head_version_id}
    answer = client.post("/admin/versions_app/agentversion/", {**version, **pointers}, follow=True)

    assert ("none, archived" in page, 'name="_save"' in page) == (True, False)
    assert (snapshot.status_code, b"Unarchive it first." in snapshot.content) == (409, True)
    assert "Agent porter is archived. Unarchive it first." in answer.content.decode()
    assert agent.versions.count() == 1


@pytest.mark.parametrize("action", ["archive", "unarchive"])
def test_editors_cannot_archive(client, action):
    agent = AgentFactory()
    client.force_login(member("editor", is_staff=True))

    assert client.post(reverse(f"admin:agents_app_agent_{action}", args=[agent.pk])).status_code == 403
