"""The pages of the trash."""

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, member
from tests.page_client import browser
from versions_app.models import DeletedAgent

pytestmark = pytest.mark.django_db

TRASH = reverse("agents:trash")


@pytest.fixture
def deleted(agent):
    agent.edit({"name": "Porter"})
    agent.delete()
    return DeletedAgent.objects.get()


def address(name, deleted):
    return reverse(f"agents:{name}", args=[deleted.pk])


def test_the_list_leads_to_the_trash(publisher, deleted):
    assert TRASH in publisher.get("/").content.decode()
    assert "Porter" in publisher.get(TRASH).content.decode()


def test_an_agent_is_restored(publisher, deleted):
    question = publisher.get(address("restore_deleted", deleted)).content.decode()
    answer = publisher.post(address("restore_deleted", deleted), {"id": deleted.agent_key})

    assert "v2 is live again." in question
    assert answer.url == reverse("agents:edit", args=[deleted.agent_key])
    assert Agent.objects.get().head_version.version_number == 2
    assert publisher.post(address("restore_deleted", deleted), {"id": "x"}).status_code == 404


def test_a_taken_id_asks_for_another(publisher, deleted):
    AgentFactory(id=deleted.agent_key)

    question = publisher.get(address("restore_deleted", deleted)).content.decode()
    refused = publisher.post(address("restore_deleted", deleted), {"id": deleted.agent_key})

    assert f"Another agent has the ID {deleted.agent_key}. Choose another one." in question
    assert refused.status_code == 422
    assert "Restore this one under another ID." in refused.content.decode()
    assert publisher.post(address("restore_deleted", deleted), {"id": "second"}).url == "/agents/second"


@pytest.mark.parametrize("agent_id", ["", "a/b", "\0", "x" * 129])
def test_an_invalid_id_is_an_error_at_its_field(publisher, deleted, agent_id):
    answer = publisher.post(address("restore_deleted", deleted), {"id": agent_id})

    assert (answer.status_code, "id" in answer.context["form"].errors) == (422, True)


def test_a_circular_reference_made_meanwhile_is_an_error(publisher):
    AgentFactory(id="child")
    AgentFactory(id="parent", agents=["child"]).delete()
    Agent.objects.get(pk="child").edit({"agents": ["parent"]})
    deleted = DeletedAgent.objects.get()

    answer = publisher.post(address("restore_deleted", deleted), {"id": "parent"})

    assert "This is a circular reference: parent → child → parent." in answer.content.decode()
    assert DeletedAgent.objects.exists()


def test_a_manager_deletes_for_good_by_typing_the_name(deleted):
    manager = browser(member(Role.MANAGER))

    assert "Delete for good" in manager.get(TRASH).content.decode()
    assert manager.post(address("purge", deleted), {"typed": "porter"}).status_code == 422
    assert manager.post(address("purge", deleted), {"typed": "Porter"}).url == TRASH
    assert not DeletedAgent.objects.exists()


def test_publishers_restore_and_only_managers_purge(viewer, editor, publisher, deleted):
    assert [client.get(TRASH).status_code for client in (viewer, editor, publisher)] == [200] * 3
    assert "Restore Porter" not in editor.get(TRASH).content.decode()
    assert "for good</a>" not in publisher.get(TRASH).content.decode()
    assert "needs the Publisher role" in editor.get(address("restore_deleted", deleted)).content.decode()
    assert editor.post(address("restore_deleted", deleted), {"id": "x"}).status_code == 403
    assert publisher.post(address("purge", deleted), {"typed": "Porter"}).status_code == 403
    assert DeletedAgent.objects.exists()


def test_selected_agents_are_restored_each_with_its_result(publisher, deleted):
    taken = AgentFactory(id="taken", name="Taken")
    taken.delete()
    AgentFactory(id="taken")
    AgentFactory(id="theirs", owner_id="newsroom", name="Secret").delete()
    ids = {record.agent_key: record.pk for record in DeletedAgent.objects.all()}
    chosen = [ids[deleted.agent_key], ids["taken"], ids["theirs"], "not-an-id"]

    answer = publisher.post(reverse("agents:restore_selected"), {"deleted": chosen})

    assert [(result.name, result.done) for result in answer.context["results"]] == [
        ("Porter", True),
        ("Taken", False),
        ("An agent", False),
        ("An agent", False),
    ]
    assert "Restored 1 of 4" in answer.content.decode()
    assert "Another agent has the ID taken." in answer.content.decode()
    assert Agent.objects.get(pk=deleted.agent_key).head_version.version_number == 2
    assert {record.agent_key for record in DeletedAgent.objects.all()} == {"taken", "theirs"}


def test_selected_agents_of_a_team_without_the_role_stay_in_the_trash(editor, deleted):
    answer = editor.post(reverse("agents:restore_selected"), {"deleted": [deleted.pk]})

    assert "This needs the Publisher role" in answer.content.decode()
    assert DeletedAgent.objects.exists()


def test_a_stranger_sees_nothing(deleted, client):
    stranger = browser(member(Role.MANAGER, "elsewhere"))

    assert "Porter" not in stranger.get(TRASH).content.decode()
    assert stranger.get(address("restore_deleted", deleted)).status_code == 404
    assert stranger.post(address("purge", deleted), {"typed": "Porter"}).status_code == 404
    assert client.get(TRASH).url.startswith("/sign-in")


def test_the_number_of_queries_does_not_grow_with_the_trash(django_assert_max_num_queries):
    person = member(Role.PUBLISHER)
    for owner_id in ("a", "b", "c"):
        MembershipFactory(user=person, owner_id=owner_id, role=Role.MANAGER)
        for _ in range(4):
            AgentFactory(owner_id=owner_id).delete()

    client = browser(person)

    with django_assert_max_num_queries(5) as queries:
        assert client.get(TRASH).status_code == 200
    assert not [query["sql"] for query in queries if '"record"' in query["sql"]]
