"""The log of activations and undo in the API."""

import pytest

from agents_app.models import Agent
from tests.api_client import agent_path, version_path
from versions_app.models import Activation


@pytest.fixture(autouse=True)
def _agent(api):
    """Create an agent with two versions, and another one whose versions are newer."""
    api.create()
    api.patch(agent_path(), {"name": "Two"})
    api.create("other")
    for number in range(3):
        api.patch(agent_path("other"), {"name": f"Name {number}"})


ACTIVATIONS = agent_path("concierge", "activations")
UNDO = agent_path("concierge", "activations", "undo")


def test_activations_record_actor_versions_and_reason(api):
    page = api.get(ACTIVATIONS).body

    newest, first = page["activations"]
    assert (page["total"], page["hasMore"]) == (2, False)
    assert (newest["fromVersionNumber"], newest["toVersionNumber"]) == (1, 2)
    assert (newest["author"], newest["source"], newest["reason"]) == ("penny", "api", "Saved and published")
    assert (first["fromVersionId"], first["reason"]) == (None, "Created")


def test_undo_publishes_the_previous_live_version(api):
    agent = api.post(UNDO).body

    assert (agent["name"], agent["activeVersionNumber"], agent["headVersionNumber"]) == ("Concierge", 1, 1)
    assert api.get(ACTIVATIONS).body["activations"][0]["reason"] == "Rolled back to v1"


def test_undoing_an_undo_publishes_the_first_version_again(api):
    api.post(UNDO)

    assert api.post(UNDO).body["activeVersionNumber"] == 2


def test_undo_of_an_activation_that_is_not_the_newest_is_a_conflict(api):
    seen = api.get(ACTIVATIONS).body["activations"][0]["id"]
    api.patch(agent_path(), {"name": "Three"})

    answer = api.post(UNDO, {"activationId": seen})

    assert (answer.status_code, answer.body["code"]) == (409, "moved")
    assert api.get(agent_path()).body["name"] == "Three"


def test_undo_of_the_first_activation_is_a_conflict(api):
    api.create("new")

    answer = api.post(agent_path("new", "activations", "undo"))

    assert (answer.status_code, answer.body["code"]) == (409, "nothing_before")


def test_undo_to_a_deleted_version_is_a_conflict(api):
    version = Agent.objects.get(pk="concierge").versions.get(version_number=1)
    api.delete(version_path(str(version.pk)))

    answer = api.post(UNDO)

    assert (answer.status_code, answer.body["code"]) == (409, "pruned")


def test_the_version_live_at_a_time_is_returned(api):
    timestamp = api.get(ACTIVATIONS).body["activations"][0]["createdAt"]

    answer = api.get(f"{ACTIVATIONS}?at=2999-01-01T00:00:00Z").body
    early = api.get(f"{ACTIVATIONS}?at=2001-01-01T00:00:00Z")

    assert (answer["versionNumber"], answer["kept"], answer["activation"]["createdAt"]) == (2, True, timestamp)
    assert early.status_code == 404


def test_a_version_that_was_live_and_deleted_since_is_not_kept(api):
    version = Agent.objects.get(pk="concierge").versions.get(version_number=1)
    times = [entry["createdAt"] for entry in api.get(ACTIVATIONS).body["activations"]]
    api.delete(version_path(str(version.pk)))

    assert [api.get(f"{ACTIVATIONS}?at={time}").body["kept"] for time in times] == [True, False]


def test_a_time_before_the_removed_entries_is_told_from_one_without_a_live_version(api):
    url = f"{ACTIVATIONS}?at=2001-01-01T00:00:00Z"

    never = api.get(url).body["error"]
    Activation.objects.filter(agent="concierge").last().delete()
    oldest = api.get(ACTIVATIONS).body["activations"][0]
    removed = api.get(url)

    assert never == "Agent concierge had no live version at 2001-01-01T00:00:00.000Z"
    assert (removed.status_code, removed.body["error"]) == (
        404,
        f"The live history of agent concierge begins at {oldest['createdAt']}. Older entries were removed",
    )


def test_a_timestamp_of_the_api_finds_its_live_version(api):
    versions = api.get(agent_path("concierge", "versions")).body["versions"]
    activations = api.get(ACTIVATIONS).body["activations"]

    for item in [*versions, *activations]:
        response = api.get(f"{ACTIVATIONS}?at={item['createdAt']}")

        assert response.status_code == 200
        assert response.body["versionNumber"] >= item.get("versionNumber", item.get("toVersionNumber"))
    assert api.get(f"{ACTIVATIONS}?at=9999-12-31T23:59:59.999Z").body["versionNumber"] == 2
