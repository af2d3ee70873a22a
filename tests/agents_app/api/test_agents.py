"""Creating, reading, listing, changing, duplicating and deleting agents by the API."""

import pytest

from agents_app.models import Agent
from tests.api_client import AGENTS, agent_path

WHOLE = {
    "description": "At the door",
    "instructions": "Grüße 👋 the\tguests.\r\n",
    "model": {"provider": "demo", "name": "echo", "temperature": 0.25, "limits": {"a": [1, None, True]}},
    "tools": ["calculator"],
    "defaultOptions": {"maxSteps": 5},
    "workflows": ["triage-ticket"],
    "agents": ["proofreader"],
    "integrationTools": ["text_case_upper"],
    "inputProcessors": [{"key": "mask-email"}],
    "outputProcessors": [],
    "memory": "last-messages",
    "scorers": {"answer-length": {"sampling": {"type": "ratio", "rate": 0.5}}},
    "metadata": {"__proto__": {"x": 1}, "big": 2**63 - 1, "tiny": 5e-324, "none": None},
}


def test_an_agent_is_returned_as_it_was_sent(api):
    assert api.create(**WHOLE).status_code == 201

    agent = api.get(agent_path()).body

    assert {name: agent[name] for name in WHOLE} == WHOLE
    assert (agent["ownerId"], agent["revision"], agent["warnings"]) == ("", 1, [])


def test_omitted_fields_are_returned_empty(api):
    agent = api.create().body

    assert (agent["tools"], agent["metadata"], agent["description"], agent["memory"]) == ([], {}, "", None)


def test_unknown_keys_are_neither_stored_nor_returned(api):
    assert "favourite" not in api.create(favourite="blue").body


@pytest.mark.parametrize("agent_id", ["Ünï cødé", "50% off?", "a#b&c=d", "日本語", "x" * 128, "..."])
def test_an_id_is_any_printable_text(api, agent_id):
    assert api.create(agent_id).status_code == 201

    assert api.get(agent_path(agent_id)).body["id"] == agent_id
    assert api.patch(agent_path(agent_id), {"name": "New"}).body["name"] == "New"
    assert api.delete(agent_path(agent_id)).body["success"] is True


@pytest.mark.parametrize("agent_id", ["", "  ", "a/b", ".", "..", "a\nb", "x" * 129, 7, None])
def test_invalid_ids_are_refused(api, agent_id):
    answer = api.create(agent_id)

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "id")
    assert not Agent.objects.exists()


def test_all_errors_of_a_body_are_reported_together(api):
    body = {"name": " ", "model": {"provider": ""}, "tools": ["a", "a"], "ownerId": 7, "changeMessage": "x" * 501}

    answer = api.post(AGENTS, {**body, "scorers": {"tone": {"sampling": {"type": "ratio", "rate": 2}}}})

    assert (answer.status_code, answer.body["error"], answer.body["code"]) == (
        400,
        "Invalid request body",
        "invalid_body",
    )
    assert {issue["field"] for issue in answer.body["issues"]} == {
        "id",
        "name",
        "instructions",
        "model.provider",
        "model.name",
        "tools",
        "scorers.tone.sampling.rate",
        "ownerId",
        "changeMessage",
    }


def test_a_taken_id_is_a_conflict_that_does_not_name_the_owner(api, stranger):
    api.create()

    for caller in (api, stranger):
        answer = caller.create()

        assert (answer.status_code, answer.body["error"]) == (409, "Agent with id concierge already exists")
    assert Agent.objects.count() == 1


def test_a_deleted_id_can_be_reused_and_starts_at_version_1(api):
    api.create()
    api.patch(agent_path(), {"name": "Two"})

    assert api.delete(agent_path()).body == {"success": True, "message": "Agent concierge was deleted"}

    assert api.get(agent_path()).status_code == 404
    assert api.create().body["headVersionNumber"] == 1


def test_null_resets_an_optional_field(api):
    api.create(**WHOLE)

    agent = api.patch(agent_path(), {"tools": None, "memory": None, "description": None, "metadata": None}).body

    assert (agent["tools"], agent["memory"], agent["description"], agent["metadata"]) == ([], None, "", {})


def test_read_only_fields_in_a_patch_change_nothing(api):
    before = api.create().body

    fixed = {"id": "other", "createdAt": "x", "updatedAt": 1, "revision": 99, "activeVersionId": "y"}

    assert api.patch(agent_path(), fixed).body == before


def test_a_list_has_pages_and_a_total(api):
    for number in range(5):
        api.create(f"a{number}")

    page = api.get(f"{AGENTS}?page=1&perPage=2&orderBy[field]=name&orderBy[direction]=ASC").body

    assert [agent["id"] for agent in page.pop("agents")] == ["a2", "a3"]
    assert page == {"total": 5, "page": 1, "perPage": 2, "hasMore": True}


def test_a_page_past_the_end_is_empty(api):
    assert api.get(f"{AGENTS}?page=9999999").body == {
        "agents": [],
        "total": 0,
        "page": 9999999,
        "perPage": 100,
        "hasMore": False,
    }


def test_a_list_returns_each_agent_like_its_own_url(api):
    api.create("a", agents=["b", "nobody"], tools=["missing"])
    api.create("b")

    listed = api.get(AGENTS).body["agents"]

    assert listed == [api.get(agent_path(agent["id"])).body for agent in listed]
    assert [(warning["field"], warning["key"]) for warning in listed[1]["warnings"]] == [
        ("tools", "missing"),
        ("agents", "nobody"),
    ]


def test_a_duplicate_is_a_new_agent_with_its_own_history(api):
    first = api.create(**WHOLE).body
    api.patch(agent_path(), {"instructions": "Later"})

    answer = api.post(
        agent_path("concierge", "duplicate"), {"id": "copy", "name": "Copy", "versionId": first["activeVersionId"]}
    )

    assert answer.status_code == 201
    assert (answer.body["name"], answer.body["instructions"]) == ("Copy", WHOLE["instructions"])
    versions = api.get(agent_path("copy", "versions")).body["versions"]
    assert [version["changeMessage"] for version in versions] == ["Duplicated from concierge version 1"]


def test_a_duplicate_under_a_taken_id_is_a_conflict(api):
    api.create()

    assert api.post(agent_path("concierge", "duplicate"), {"id": "concierge"}).status_code == 409


def test_a_new_agent_and_its_first_version_have_one_time(api):
    api.create()
    api.post(agent_path("concierge", "duplicate"), {"id": "copy"})

    for agent in Agent.objects.all():
        version, activation = agent.versions.get(), agent.activations.get()
        assert agent.created_at == agent.updated_at == version.created_at == activation.created_at
