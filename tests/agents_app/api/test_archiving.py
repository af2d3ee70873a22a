"""Archiving over the API: an archived agent is in no list and does not run."""

import pytest

from agents_app.models import Agent
from tests.api_client import AGENTS, agent_path, version_path
from tests.factories import AgentFactory, archived_agent

ARCHIVE, UNARCHIVE = agent_path("concierge", "archive"), agent_path("concierge", "unarchive")


def ids(caller, query=""):
    page = caller.get(f"{AGENTS}{query}").body
    assert page.get("total", len(page["agents"])) == len(page["agents"])
    return [agent["id"] for agent in page["agents"]]


@pytest.fixture
def archived(api):
    """Return an archived agent with a draft, beside one that is not archived."""
    api.create("other")
    api.create()
    api.patch(agent_path(), {"name": "Draft", "autoPublish": False})
    answer = api.post(ARCHIVE)
    assert answer.status_code == 200
    return answer.body


@pytest.mark.parametrize("query", ["", "&cursor=", "&search=greet", "&ownerId=", "&orderBy[field]=name"])
def test_lists_leave_out_archived_agents(api, archived, query):
    assert ids(api, f"?status=published{query}") == ["other"]
    assert ids(api, f"?status=draft{query}") == ["other"]
    assert ids(api, f"?status=archived{query}") == ["concierge"]


def test_an_archived_agent_keeps_everything(api, archived):
    read = api.get(agent_path()).body

    assert read["archivedAt"] is not None
    assert read["status"] == "archived"
    assert (read["hasDraft"], read["headVersionNumber"]) == (True, 2)
    assert api.get(f"{agent_path()}?status=archived").body == read
    assert len(api.get(agent_path("concierge", "versions")).body["versions"]) == 2
    assert Agent.objects.get(pk="concierge").archived_by_name == "penny"


def test_an_unarchived_agent_is_as_before(api, archived):
    answer = api.post(UNARCHIVE)

    assert (answer.status_code, answer.body["archivedAt"], answer.body["headVersionNumber"]) == (200, None, 2)
    assert answer.body["revision"] == archived["revision"] + 1
    assert ids(api) == ["concierge", "other"]
    assert api.patch(agent_path(), {"name": "Third"}).status_code == 200


def test_archiving_and_unarchiving_can_be_repeated(api, archived):
    assert api.post(ARCHIVE).body == archived
    first = api.post(UNARCHIVE).body
    assert api.post(UNARCHIVE).body == first


def test_a_read_of_an_archived_agent_is_not_answered_from_a_cache(api, archived):
    tag = api.get(agent_path()).headers["ETag"]
    api.post(UNARCHIVE)

    assert api.get(agent_path(), If_None_Match=tag).status_code == 200
    assert api.post(ARCHIVE, If_Match=tag).status_code == 412


def test_every_change_of_an_archived_agent_says_so(api, archived):
    live, head = archived["activeVersionId"], archived["headVersionId"]
    answers = [
        api.patch(agent_path(), {"name": "New"}),
        api.patch(agent_path(), {"name": "New", "autoPublish": False}),
        api.patch(agent_path(), {"ownerId": "x"}),
        api.post(version_path(head, "activate")),
        api.post(version_path(live, "activate")),
        api.post(version_path(live, "restore")),
        api.post(agent_path("concierge", "versions"), {}),
        api.post(agent_path("concierge", "discard-draft")),
        api.post(agent_path("concierge", "activations", "undo")),
        api.delete(version_path(head)),
        api.patch(version_path(head), {"name": "New", "pinned": True}),
    ]

    refused = [(answer.status_code, answer.body["code"]) for answer in answers]
    assert refused == [(409, "archived")] * 2 + [(403, "forbidden")] + [(409, "archived")] * 8
    assert answers[0].body == {"error": "Agent concierge is archived. Unarchive it first.", "code": "archived"}
    assert api.get(agent_path()).body["revision"] == archived["revision"]


def test_no_version_of_an_archived_agent_is_deleted(api):
    first = api.create().body["activeVersionId"]
    api.patch(agent_path(), {"name": "Second"})
    api.post(ARCHIVE)

    answer = api.delete(version_path(first))

    assert (answer.status_code, answer.body["code"]) == (409, "archived")
    assert api.get(version_path(first)).status_code == 200


def test_an_archived_agent_can_be_duplicated_and_deleted(api, archived):
    duplicate = api.post(agent_path("concierge", "duplicate"), {"id": "copy"})

    assert (duplicate.status_code, duplicate.body["archivedAt"]) == (201, None)
    assert api.delete(agent_path()).status_code == 200


def test_dependents_are_named_before_archiving(api):
    api.create()
    api.create("desk", agents=["concierge"])

    refused = api.post(ARCHIVE)
    archived = api.post(f"{ARCHIVE}?force=true")

    assert (refused.status_code, refused.body["code"]) == (409, "in_use")
    assert refused.body["error"] == ("Agent concierge is a sub-agent of 'desk'. Send force=true to archive it anyway.")
    assert archived.status_code == 200
    warnings = api.get(agent_path("desk")).body["warnings"]
    assert warnings == [{"field": "agents", "key": "concierge", "message": "The agent 'concierge' is archived."}]
    assert api.post(UNARCHIVE).status_code == 200
    assert api.get(agent_path("desk")).body["warnings"] == []


def test_an_archived_agent_cannot_become_a_sub_agent_in_strict_mode(api, archived):
    answer = api.patch(f"{agent_path('other')}?strict=true", {"agents": ["concierge"]})

    assert answer.status_code == 400
    assert answer.body["issues"] == [{"field": "agents[0]", "message": "The agent 'concierge' is archived."}]


def test_a_stranger_does_not_see_that_a_sub_agent_is_archived(api, archived):
    archived_agent("secret", "elsewhere")

    warnings = api.create("desk", agents=["concierge", "secret"]).body["warnings"]

    assert warnings == [
        {"field": "agents", "key": "concierge", "message": "The agent 'concierge' is archived."},
        {"field": "agents", "key": "secret", "message": "No agent is registered as 'secret'."},
    ]


def test_archiving_needs_the_publisher_role(api, viewer, editor, stranger):
    api.create()

    for path in (ARCHIVE, UNARCHIVE):
        assert [caller.post(path).status_code for caller in (viewer, editor, stranger)] == [403, 403, 404]


def test_an_archived_agent_of_another_owner_is_hidden(api):
    agent = AgentFactory(id="secret", owner_id="elsewhere")
    Agent.objects.filter(pk=agent.pk).update_unguarded(archived_at=agent.created_at)

    assert ids(api, "?status=archived") == []


# --- Runs


@pytest.mark.parametrize("route", ["generate", "stream"])
@pytest.mark.parametrize("query", ["", "?status=draft", "?versionNumber=1"])
def test_an_archived_agent_does_not_run(api, archived, route, query):
    answer = api.post(f"/api/agents/concierge/{route}{query}", {"messages": "Hi"})

    assert (answer.status_code, answer.body["code"]) == (409, "archived")


def test_an_archived_agent_is_not_among_those_that_run(api, archived):
    assert {"other", "concierge"} & {*api.get("/api/agents").body} == {"other"}
    assert api.get("/api/agents/concierge").status_code == 409
