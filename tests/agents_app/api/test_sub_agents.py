"""Agents that name other agents."""

import pytest

from agents_app.models import Agent
from tests.api_client import Caller, agent_path, version_path
from tests.factories import UserFactory, api_key


@pytest.fixture
def acme_publisher(api):
    """Return a publisher of acme who also reads shared agents."""
    user = UserFactory(username="ada")
    user.memberships.create(owner_id="acme", role="publisher")
    user.memberships.create(owner_id="", role="viewer")
    return Caller(api_key(user))


def test_visible_dependents_are_named_and_hidden_ones_counted(api, acme_publisher):
    api.create("base")
    api.create("helper", agents=["base"])
    acme_publisher.create("secret", ownerId="acme", agents=["base"])

    body = api.get(agent_path("base", "dependents")).body

    assert body == {
        "dependents": [{"id": "helper", "name": "Concierge", "ownerId": ""}],
        "total": 2,
        "hidden": 1,
        "hiddenCount": 1,
    }
    assert acme_publisher.get(agent_path("base", "dependents")).body["hidden"] == 0


def test_a_draft_counts_as_dependent(api):
    api.create("base")
    api.create("helper")
    api.patch(agent_path("helper"), {"agents": ["base"], "autoPublish": False})

    assert api.get(agent_path("base", "dependents")).body["total"] == 1


def test_agents_of_another_owner_with_the_same_key_are_no_dependents(api, acme_publisher):
    acme_publisher.create("inner", ownerId="acme")
    api.create("outer", agents=["inner"])

    assert acme_publisher.get(agent_path("inner", "dependents")).body["total"] == 0
    assert [warning["key"] for warning in api.get(agent_path("outer")).body["warnings"]] == ["inner"]


def test_an_agent_with_dependents_is_deleted_only_with_force(api, acme_publisher):
    api.create("base")
    api.create("helper", agents=["base"])
    acme_publisher.create("secret", ownerId="acme", agents=["base"])

    refused = api.delete(agent_path("base"))

    assert (refused.status_code, refused.body["code"]) == (409, "in_use")
    assert refused.body["error"].startswith("Agent base is a sub-agent of 'helper' and 1 more.")
    assert api.delete(f"{agent_path('base')}?force=true").body["success"] is True


def test_an_agent_cannot_be_its_own_sub_agent(api):
    answer = api.create("a", agents=["b", "a"])

    assert (answer.status_code, answer.body["issues"]) == (
        400,
        [{"field": "agents[1]", "message": "An agent cannot be its own sub-agent."}],
    )
    assert not Agent.objects.exists()


def test_circular_sub_agents_are_refused_with_the_path(api):
    api.create("a")
    api.create("b", agents=["a"])
    api.create("c", agents=["b"])

    answer = api.patch(agent_path("a"), {"agents": ["c"]})

    assert answer.body["issues"] == [{"field": "agents[0]", "message": "This is a circular reference: a → c → b → a."}]
    assert api.get(agent_path("a")).body["agents"] == []


@pytest.fixture
def reversed_reference(api):
    """Create `a`, whose version 1 names `b`, and `b`, which names `a` now."""
    api.create("a", agents=["b"])
    api.patch(agent_path("a"), {"agents": []})
    api.create("b", agents=["a"])
    return str(Agent.objects.get(pk="a").versions.get(version_number=1).pk)


@pytest.mark.parametrize(
    ("act", "body"),
    [("activate", {}), ("restore", {}), ("restore", {"autoPublish": False})],
    ids=["activate", "restore", "restore as a draft"],
)
def test_a_version_with_circular_sub_agents_is_not_restored(api, reversed_reference, act, body):
    before = list(Agent.objects.order_by("pk").values())

    answer = api.post(version_path(reversed_reference, act, agent_id="a"), body)

    assert (answer.status_code, answer.body["issues"]) == (
        400,
        [{"field": "agents[0]", "message": "This is a circular reference: a → b → a."}],
    )
    assert list(Agent.objects.order_by("pk").values()) == before


def test_undoing_an_activation_refuses_circular_sub_agents(api, reversed_reference):
    answer = api.post(agent_path("a", "activations", "undo"))

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "agents[0]")
    assert api.get(agent_path("a")).body["activeVersionNumber"] == 2


def test_a_circular_reference_the_caller_cannot_see_is_allowed(api, acme_publisher):
    acme_publisher.create("inner", ownerId="acme", agents=["outer"])
    api.create("outer", agents=["inner"])
    first = api.patch(agent_path("outer"), {"agents": []}).body["activeVersionId"]
    version = Agent.objects.get(pk="outer").versions.get(version_number=1)

    assert api.post(version_path(str(version.pk), "activate", agent_id="outer")).status_code == 200
    assert api.post(version_path(first, "activate", agent_id="outer")).status_code == 200


def test_a_duplicate_cannot_be_its_own_sub_agent(api):
    api.create("a", agents=["night"])

    answer = api.post(agent_path("a", "duplicate"), {"id": "night"})

    assert (answer.status_code, answer.body["issues"][0]["message"]) == (
        400,
        "An agent cannot be its own sub-agent.",
    )
    assert not Agent.objects.filter(pk="night").exists()


def test_every_circular_key_is_named(api):
    for agent_id, named in {"a": [], "b": ["a"], "c": ["b", "d"], "d": ["c"], "e": ["f"]}.items():
        api.create(agent_id, agents=[] if agent_id == "c" else named)
    Agent.objects.get(pk="c").edit({"agents": ["b", "d"]})

    answer = api.patch(agent_path("a"), {"agents": ["e", "d", "b"]})

    assert answer.body["issues"] == [
        {"field": "agents[1]", "message": "This is a circular reference: a → d → c → b → a."},
        {"field": "agents[2]", "message": "This is a circular reference: a → b → a."},
    ]


def test_a_thousand_keys_take_as_many_queries_as_one(api, django_assert_max_num_queries):
    api.create("a")
    for number in range(3):
        api.create(f"b{number}", agents=[f"c{number}"])
    keys = [*(f"b{number}" for number in range(3)), *(f"x{number}" for number in range(900))]

    with django_assert_max_num_queries(30):
        answer = api.patch(agent_path("a"), {"agents": keys})

    assert answer.status_code == 200


def test_a_thousand_references_of_a_kind_are_accepted(api):
    keys = [f"a{number}" for number in range(1000)]

    answer = api.create("x", agents=keys, tools=keys, scorers={key: {} for key in keys})

    assert answer.status_code == 201
    assert answer.body["agents"] == keys


def test_owners_are_loaded_for_more_agents_than_one_statement_takes(api):
    api.create("a")

    assert Agent.objects.owners_of(["a", *map(str, range(260_000))]) == {"a": ""}


def test_a_circular_reference_through_a_draft_is_refused(api):
    api.create("a")
    api.create("b")
    api.patch(agent_path("b"), {"agents": ["a"], "autoPublish": False})

    assert api.patch(agent_path("a"), {"agents": ["b"]}).status_code == 400


def test_an_unregistered_key_is_an_error_only_in_strict_mode(api):
    body = {
        "tools": ["calculator", "nothing"],
        "memory": "none",
        "inputProcessors": [{"key": "mask-email"}, {"id": "x"}],
    }
    api.create("a")

    answer = api.patch(f"{agent_path('a')}?strict=true", body)

    assert (answer.status_code, {issue["field"] for issue in answer.body["issues"]}) == (
        400,
        {"tools[1]", "memory", "inputProcessors[1]"},
    )
    assert api.get(agent_path("a")).body["headVersionNumber"] == 1
    assert len(api.patch(agent_path("a"), body).body["warnings"]) == 3


@pytest.mark.parametrize("act", ["activate", "restore", "undo", "duplicate"])
def test_restoring_an_unregistered_key_is_refused_only_in_strict_mode(api, act):
    api.create("a", tools=["calculator", "gone"])
    api.patch(agent_path("a"), {"tools": []})
    version = str(Agent.objects.get().versions.get(version_number=1).pk)
    path = {
        "undo": agent_path("a", "activations", "undo"),
        "duplicate": agent_path("a", "duplicate"),
    }.get(act, version_path(version, act, agent_id="a"))
    body = {"id": "b", "versionId": version} if act == "duplicate" else {}

    refused = api.post(f"{path}?strict=true", body)

    assert (refused.status_code, refused.body["issues"]) == (
        400,
        [{"field": "tools[1]", "message": "No tool is registered as 'gone'."}],
    )
    assert api.get(agent_path("a")).body["activeVersionNumber"] == 2
    assert api.post(path, body).status_code in (200, 201)
