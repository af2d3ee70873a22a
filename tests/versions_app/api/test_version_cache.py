"""The cache of versions."""

import pytest

from agents_app.models import Agent
from tests.api_client import agent_path, version_path
from versions_app.models import AgentVersion

HISTORY = agent_path("a", "versions")


@pytest.fixture
def versions(api):
    """Return the ids of three cached versions, newest first."""
    api.create("a")
    for name in ("Two", "Three"):
        api.patch(agent_path("a"), {"name": name})
    return [version["id"] for version in numbers(api)]


def numbers(api):
    return api.get(HISTORY).body["versions"]


def compared(api, before, after):
    return api.get(f"{HISTORY}/compare?from={before}&to={after}").body


@pytest.mark.parametrize(("field", "column"), [("name", "name"), ("changeMessage", "change_message")])
def test_name_and_message_are_current(api, versions, field, column):
    compared(api, versions[1], versions[0])

    AgentVersion.objects.filter(pk=versions[1]).update(**{column: "Said later"})

    assert numbers(api)[1][field] == "Said later"
    assert api.get(version_path(versions[1], agent_id="a")).body[field] == "Said later"
    assert compared(api, versions[1], versions[0])["fromVersion"][field] == "Said later"


def test_pinning_and_unpinning_are_visible_at_once(api, versions):
    for pinned in (True, False, True):
        AgentVersion.objects.filter(pk=versions[2]).update(pinned=pinned)

        assert [version["pinned"] for version in numbers(api)] == [False, False, pinned]


def test_live_and_head_flags_are_current(api, versions):
    AgentVersion.objects.get(pk=versions[2]).activate()

    assert [(version["isActive"], version["isHead"]) for version in numbers(api)] == [
        (False, False),
        (False, False),
        (True, True),
    ]
    assert compared(api, versions[2], versions[0])["fromVersion"]["isActive"] is True


def test_a_deleted_version_is_not_served_from_the_cache(api, versions):
    compared(api, versions[1], versions[0])

    AgentVersion.objects.get(pk=versions[1]).remove()

    assert [version["id"] for version in numbers(api)] == [versions[0], versions[2]]
    assert api.get(version_path(versions[1], agent_id="a")).status_code == 404
    assert api.get(f"{HISTORY}/compare?from={versions[1]}&to={versions[0]}").status_code == 404


def test_cached_versions_are_not_visible_to_other_owners(api, stranger, versions):
    compared(api, versions[1], versions[0])
    Agent.objects.get().change_owner("ann")

    assert stranger.get(HISTORY).status_code == 404
    assert stranger.get(version_path(versions[0], agent_id="a")).status_code == 404
    assert stranger.get(f"{HISTORY}/compare?from={versions[1]}&to={versions[0]}").status_code == 404


def test_a_cached_version_is_found_under_its_own_agent_only(api, versions):
    api.create("b")

    assert api.get(version_path(versions[0], agent_id="b")).status_code == 404


def test_a_version_can_be_compared_with_itself(api, versions):
    same = compared(api, versions[0], versions[0])

    assert (same["fromVersion"], same["diffs"]) == (same["toVersion"], [])
