"""The cache of agents in lists."""

import pytest

from agents_app.api import representation
from tests.api_client import AGENTS, agent_path

pytestmark = pytest.mark.django_db

CACHES = [representation._unregistered_json, representation._has_stored_names]


def listed(caller, query=""):
    return {agent["id"]: agent for agent in caller.get(AGENTS + query).body["agents"]}


def test_every_kind_of_change_is_visible_at_once(api):
    api.create("a")
    first = listed(api)["a"]

    api.patch(agent_path("a"), {"name": "Two"})
    edited = listed(api)["a"]
    api.patch(agent_path("a"), {"name": "Three", "autoPublish": False})
    drafted, draft = listed(api)["a"], listed(api, "?status=draft")["a"]
    api.post(agent_path("a", "versions", first["activeVersionId"], "activate"))
    back = listed(api)["a"]

    assert [edited["name"], drafted["name"], draft["name"], back["name"]] == ["Two", "Two", "Three", first["name"]]
    assert [drafted["hasDraft"], back["activeVersionNumber"]] == [True, 1]


def test_a_list_returns_each_agent_like_its_own_url(api):
    for number in range(3):
        api.create(f"a{number}", tools=["gone"], metadata={"é": [number, None]})

    for _ in range(2):
        assert listed(api) == {name: api.get(agent_path(name)).body for name in ("a0", "a1", "a2")}


def test_a_recreated_agent_is_not_read_from_the_cache(api):
    api.create("a", name="Old")
    listed(api)

    api.delete(agent_path("a"))
    api.create("a", name="New")

    assert listed(api)["a"]["name"] == "New"


def test_changes_of_other_agents_update_warnings_at_once(api):
    api.create("a", agents=["b"])
    before = listed(api)["a"]["warnings"]

    api.create("b")

    assert [len(before), listed(api)["a"]["warnings"]] == [1, []]


def test_warnings_about_very_many_references_are_not_kept_in_memory(api):
    for cache in CACHES:
        cache.cache_clear()

    warnings = api.create("a", tools=[f"gone-{number:>50}" for number in range(1000)]).body["warnings"]

    assert listed(api)["a"]["warnings"] == warnings
    assert len(warnings) == 1000
    assert [cache.cache_info().currsize for cache in CACHES] == [0, 0]


def test_cached_agents_are_not_visible_to_other_owners(api, stranger):
    api.create("a")
    assert "a" in listed(api)

    assert listed(stranger) == {}
