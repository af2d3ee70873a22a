"""The trash over the API: list, restore and delete for good."""

import pytest

from agents_app.models import Agent
from tests.api_client import Caller, agent_path, version_path
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.runs_app.factories import RunFactory

TRASH = "/api/stored/deleted-agents"


@pytest.fixture
def manager() -> Caller:
    return Caller(api_key(member("manager", username="mona")))


def deleted_agent(caller, agent_id="concierge", **fields):
    """Create an agent with two versions and delete it. Return its versions and its entry in the trash."""
    assert caller.create(agent_id, **fields).status_code == 201
    caller.patch(agent_path(agent_id), {"name": "Second"})
    versions = caller.get(agent_path(agent_id, "versions")).body["versions"]
    assert caller.delete(agent_path(agent_id)).status_code == 200
    return versions, caller.get(f"{TRASH}?agentId={agent_id}").body["deletedAgents"][0]


def test_a_deleted_agent_is_listed(api):
    _, entry = deleted_agent(api)

    page = api.get(TRASH).body

    assert (page["total"], page["hasMore"]) == (1, False)
    assert page["deletedAgents"] == [entry]
    assert api.get(f"{TRASH}/{entry['id']}").body == entry
    values = {name: entry[name] for name in ("agentId", "name", "ownerId", "liveVersionNumber", "versionCount")}
    assert list(values.values()) == ["concierge", "Second", "", 2, 2]
    assert entry["deletedBy"] == "penny"
    assert entry["removedAt"] > entry["deletedAt"]


@pytest.mark.django_db
def test_the_list_is_filtered_by_team_and_agent():
    root = Caller(api_key(UserFactory(is_superuser=True)))
    for agent_id, owner_id in (("one", ""), ("two", "support"), ("three", "support")):
        AgentFactory(id=agent_id, owner_id=owner_id).delete()

    listed = [
        [entry["agentId"] for entry in root.get(f"{TRASH}?{query}").body["deletedAgents"]]
        for query in ("ownerId=", "ownerId=support", "agentId=two", "ownerId=&agentId=two")
    ]

    assert listed == [["one"], ["three", "two"], ["two"], []]


@pytest.mark.parametrize("number", [0, 1])
def test_the_agent_with_the_id_is_restored_and_purged(manager, number):
    entries = [deleted_agent(manager, agent_id)[1] for agent_id in ("one", "two")]
    other = entries[1 - number]

    assert manager.get(f"{TRASH}/{entries[number]['id']}").body == entries[number]
    restored = manager.post(f"{TRASH}/{entries[number]['id']}/restore").body
    assert (restored["id"], manager.get(TRASH).body["deletedAgents"]) == (entries[number]["agentId"], [other])

    manager.delete(agent_path(restored["id"]))
    again = manager.get(f"{TRASH}?agentId={restored['id']}").body["deletedAgents"][0]["id"]
    assert manager.delete(f"{TRASH}/{again}").status_code == 200
    assert manager.get(TRASH).body["deletedAgents"] == [other]


def test_restoring_brings_back_the_same_versions(api):
    versions, entry = deleted_agent(api)

    answer = api.post(f"{TRASH}/{entry['id']}/restore")

    assert (answer.status_code, answer.body["name"]) == (201, "Second")
    assert answer.headers["ETag"] == api.get(agent_path()).headers["ETag"]
    assert api.get(agent_path("concierge", "versions")).body["versions"] == versions
    assert api.get(TRASH).body["total"] == 0
    assert api.post(f"{TRASH}/{entry['id']}/restore").status_code == 404


def test_a_restored_agent_can_be_rolled_back_and_edited(api):
    _, entry = deleted_agent(api)
    api.post(f"{TRASH}/{entry['id']}/restore")

    assert api.post(agent_path("concierge", "activations", "undo")).body["activeVersionNumber"] == 1
    assert api.patch(agent_path(), {"name": "Third"}).body["activeVersionNumber"] == 3


def test_a_taken_id_asks_for_another(api):
    versions, entry = deleted_agent(api)
    api.create()

    refused = api.post(f"{TRASH}/{entry['id']}/restore", {})
    restored = api.post(f"{TRASH}/{entry['id']}/restore", {"id": "night-concierge"})

    assert (refused.status_code, refused.body["code"]) == (409, "already_exists")
    assert "Another agent has the ID concierge" in refused.body["error"]
    assert (restored.status_code, restored.body["id"]) == (201, "night-concierge")
    texts = [api.get(version_path(version["id"], agent_id="night-concierge")).body for version in versions]
    assert [text["agentId"] for text in texts] == ["night-concierge"] * 2  # not as cached under the old ID


def test_a_circular_reference_made_meanwhile_is_named_with_the_ways_out(api):
    api.create("child")
    _, entry = deleted_agent(api, "parent", agents=["child"])
    api.patch(agent_path("child"), {"agents": ["parent"]})
    path = f"{TRASH}/{entry['id']}/restore"

    refused, restored = api.post(path), api.post(path, {"id": "other-parent"})

    assert (refused.status_code, refused.body["code"]) == (409, "not_restorable")
    assert refused.body["error"] == (
        "This is a circular reference: parent → child → parent. "
        "Restore it under another ID, or change the other agent first."
    )
    assert restored.status_code == 201


@pytest.mark.parametrize("body", [{"id": ""}, {"id": "a/b"}, {"id": 7}, {"id": "x" * 129}, []])
def test_an_invalid_id_is_refused(api, body):
    _, entry = deleted_agent(api)

    assert api.post(f"{TRASH}/{entry['id']}/restore", body).status_code == 400
    assert api.get(TRASH).body["total"] == 1


def test_a_repeated_restore_answers_the_same(api):
    _, entry = deleted_agent(api)
    path = f"{TRASH}/{entry['id']}/restore"

    first, second = (api.post(path, {}, Idempotency_Key="once") for _ in range(2))

    assert (first.status_code, second.status_code) == (201, 201)
    assert second.headers["Idempotent-Replayed"] == "true"


def test_publishers_restore_and_only_managers_purge(api, viewer, editor, manager, stranger):
    _, entry = deleted_agent(api)
    path = f"{TRASH}/{entry['id']}"

    assert [viewer.get(TRASH).body["total"], stranger.get(TRASH).body["total"]] == [1, 0]
    assert [caller.get(path).status_code for caller in (viewer, stranger)] == [200, 404]
    assert [caller.delete(path).status_code for caller in (viewer, editor, api, stranger)] == [403, 403, 403, 404]
    assert [caller.post(f"{path}/restore").status_code for caller in (viewer, editor, stranger)] == [403, 403, 404]
    assert manager.delete(path).body["message"] == "Agent concierge was deleted for good"
    assert api.get(TRASH).body["total"] == 0


def test_an_agent_of_another_owner_stays_hidden_in_the_trash(api, stranger):
    AgentFactory(id="secret", owner_id="elsewhere").delete()

    assert api.get(TRASH).body["total"] == 0
    assert api.get(f"{TRASH}?ownerId=elsewhere").body["total"] == 0
    assert stranger.get(f"{TRASH}?ownerId=elsewhere").body["total"] == 1


@pytest.mark.parametrize("name", ["nonsense", "018f0000-0000-7000-8000-000000000000"])
def test_an_unknown_deleted_agent_is_not_found(api, name):
    assert [api.get(f"{TRASH}/{name}").status_code, api.post(f"{TRASH}/{name}/restore").status_code] == [404, 404]


def test_runs_are_deleted_for_good(api):
    api.create()
    run = RunFactory(agent=Agent.objects.get())
    api.delete(agent_path())
    entry = api.get(TRASH).body["deletedAgents"][0]
    api.post(f"{TRASH}/{entry['id']}/restore")

    assert api.get(f"/api/runs/{run.pk}").status_code == 404


def test_the_list_is_paged(api):
    for number in range(3):
        AgentFactory(id=f"a{number}").delete()

    pages = [api.get(f"{TRASH}?page={page}&perPage=2").body for page in (0, 1)]

    assert [[entry["agentId"] for entry in page["deletedAgents"]] for page in pages] == [["a2", "a1"], ["a0"]]
    assert [page["hasMore"] for page in pages] == [True, False]
    assert api.get(f"{TRASH}?perPage=0").status_code == 400
