"""The trash in Django admin."""

import pytest
from django.urls import reverse

from agents_app.models import Agent
from tests.factories import AgentFactory, UserFactory, member
from versions_app.models import DeletedAgent

pytestmark = pytest.mark.django_db

TRASH = "/admin/versions_app/deletedagent/"


@pytest.fixture
def staff(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))


@pytest.fixture
def deleted():
    AgentFactory(id="porter", name="Night porter").delete()
    return DeletedAgent.objects.get()


def address(name, deleted):
    return reverse(f"admin:versions_app_deletedagent_{name}", args=[deleted.pk])


def test_the_trash_is_listed_and_searched(client, staff, deleted):
    AgentFactory(name="Cook").delete()

    assert [name in client.get(TRASH, {"q": "night"}).content.decode() for name in ("Night porter", "Cook")] == [
        True,
        False,
    ]
    assert client.get(address("change", deleted)).status_code == 200


def test_the_questions_say_what_happens(client, staff, deleted):
    restore = client.get(address("restore", deleted)).content.decode()
    purge = client.get(address("purge", deleted)).content.decode()

    assert "<h1>Restore Night porter?</h1>" in restore
    assert "is restored with its version, as it was when it was deleted. v1 is live again." in restore
    assert "<h1>Delete Night porter for good?</h1>" in purge
    assert "is removed from the trash with its version. This cannot be undone." in purge
    for page in (restore, purge):
        assert 'class="module aligned"' in page
        assert ">Cancel</a>" in page


def test_an_agent_is_restored(client, staff, deleted):
    assert b"Its runs are not restored." in client.get(address("restore", deleted)).content
    answer = client.post(address("restore", deleted), {"id": "porter"})

    assert answer.url == "/admin/agents_app/agent/porter/change/"
    assert Agent.objects.get().name == "Night porter"
    assert client.get(address("restore", deleted)).status_code == 404


def test_a_taken_id_asks_for_another(client, staff, deleted):
    AgentFactory(id="porter")

    assert b"Restore this one under another ID." in client.post(address("restore", deleted), {"id": "porter"}).content
    client.post(address("restore", deleted), {"id": "second"})
    assert set(Agent.objects.values_list("pk", flat=True)) == {"porter", "second"}


def test_an_agent_is_deleted_for_good_by_typing_its_name(client, staff, deleted):
    client.post(address("purge", deleted), {"typed": "yes"})
    assert DeletedAgent.objects.exists()
    client.post(address("purge", deleted), {"typed": "Night porter"})
    assert not DeletedAgent.objects.exists()


def test_staff_need_the_role_to_restore_or_purge(client, deleted):
    client.force_login(member("publisher", is_staff=True))
    assert b"Night porter" in client.get(TRASH).content
    assert client.post(address("purge", deleted), {"typed": "Night porter"}).status_code == 403

    client.force_login(member("editor", is_staff=True))
    assert client.post(address("restore", deleted), {"id": "porter"}).status_code == 403

    client.force_login(member("manager", "elsewhere", is_staff=True))
    assert b"Night porter" not in client.get(TRASH).content
    assert client.post(address("purge", deleted), {"typed": "Night porter"}).status_code == 404
    assert DeletedAgent.objects.exists()


@pytest.mark.parametrize(
    ("role", "offered"), [("viewer", []), ("publisher", ["restore"]), ("manager", ["restore", "purge"])]
)
def test_the_trash_links_to_what_the_role_allows(client, deleted, role, offered):
    client.force_login(member(role, is_staff=True))
    pages = [client.get(page).content.decode() for page in (TRASH, address("change", deleted))]

    links = [[name for name in ("restore", "purge") if address(name, deleted) in page] for page in pages]

    assert links == [offered, offered]


def test_the_trash_links_to_all_actions_for_superusers(client, staff, deleted):
    page = client.get(TRASH).content.decode()

    assert [address(name, deleted) in page for name in ("restore", "purge")] == [True, True]
