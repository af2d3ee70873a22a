"""Live, head and draft in the API."""

import pytest

from tests.api_client import agent_path, version_path


@pytest.fixture(autouse=True)
def _agent(api):
    api.create()


def state(api):
    agent = api.get(agent_path()).body
    return agent["activeVersionNumber"], agent["headVersionNumber"], agent["hasDraft"]


def version_id(api, number):
    versions = api.get(agent_path("concierge", "versions")).body["versions"]
    return next(version["id"] for version in versions if version["versionNumber"] == number)


def edit(api, text, **more):
    return api.patch(agent_path(), {"instructions": text, **more}).body


def test_creating_publishes_version_1(api):
    assert state(api) == (1, 1, False)
    assert api.get(agent_path("concierge", "versions")).body["versions"][0]["changeMessage"] == "Created"


def test_an_edit_creates_and_publishes_a_version(api):
    answer = edit(api, "Two")

    assert answer["resolvedVersionId"] == answer["activeVersionId"] == version_id(api, 2)
    assert state(api) == (2, 2, False)


def test_an_edit_without_publishing_creates_a_draft(api):
    answer = edit(api, "Two", autoPublish=False, changeMessage="Try it")

    assert (answer["instructions"], answer["activeVersionNumber"], answer["hasDraft"]) == ("Two", 1, True)
    assert answer["resolvedVersionId"] == answer["headVersionId"]
    assert api.get(agent_path()).body["instructions"] == "Greet guests."
    assert state(api) == (1, 2, True)


def test_a_publishing_edit_keeps_the_draft(api):
    edit(api, "Draft", autoPublish=False)

    answer = api.patch(agent_path(), {"description": "Now live"}).body

    assert (answer["instructions"], answer["description"]) == ("Greet guests.", "Now live")
    assert state(api) == (3, 2, True)
    third = api.get(version_path(version_id(api, 3))).body
    assert (third["basedOn"], third["changedFields"]) == (1, ["description"])


def test_an_edit_without_a_change_writes_nothing(api):
    before = api.get(agent_path()).body

    assert api.patch(agent_path(), {"name": "Concierge", "model": before["model"]}).body == before


def test_activating_keeps_the_draft(api):
    edit(api, "Two")
    edit(api, "Draft", autoPublish=False)

    answer = api.post(version_path(version_id(api, 1), "activate")).body

    assert answer == {
        "success": True,
        "message": "Version 1 is now active",
        "activeVersionId": version_id(api, 1),
    }
    assert state(api) == (1, 3, True)


def test_activating_the_draft_publishes_it(api):
    edit(api, "Draft", autoPublish=False)

    api.post(version_path(version_id(api, 2), "activate"))

    assert state(api) == (2, 2, False)


def test_restore_creates_a_new_live_version(api):
    edit(api, "Two")

    answer = api.post(version_path(version_id(api, 1), "restore")).body

    assert (answer["versionNumber"], answer["basedOn"], answer["isActive"], answer["isHead"]) == (3, 2, True, True)
    assert answer["changeMessage"] == "Restored from version 1"
    assert answer["snapshot"]["instructions"] == "Greet guests."
    assert state(api) == (3, 3, False)


def test_restore_without_publishing_creates_a_draft(api):
    edit(api, "Two")

    api.post(version_path(version_id(api, 1), "restore"), {"autoPublish": False})

    assert state(api) == (2, 3, True)


def test_a_manual_snapshot_is_not_published(api):
    answer = api.post(agent_path("concierge", "versions"), {"name": "Spring", "changeMessage": "Keep", "pinned": True})

    assert answer.status_code == 201
    assert (answer.body["name"], answer.body["changeMessage"], answer.body["pinned"]) == ("Spring", "Keep", True)
    assert (answer.body["changedFields"], answer.body["isActive"], answer.body["isHead"]) == ([], False, True)
    assert state(api) == (1, 2, False)


def test_discarding_a_draft_moves_the_head_to_live(api):
    edit(api, "Draft", autoPublish=False)

    answer = api.post(agent_path("concierge", "discard-draft")).body

    assert (answer["instructions"], answer["hasDraft"]) == ("Greet guests.", False)
    assert state(api) == (1, 1, False)


def test_deleting_the_head_version_moves_the_head_to_live(api):
    edit(api, "Draft", autoPublish=False)

    assert api.delete(version_path(version_id(api, 2))).body["success"] is True

    assert state(api) == (1, 1, False)


def test_the_live_version_cannot_be_deleted(api):
    answer = api.delete(version_path(version_id(api, 1)))

    assert (answer.status_code, answer.body["code"]) == (400, "active_version")
    assert answer.body["error"] == "Cannot delete the active version. Activate a different version first."


def test_an_edit_of_a_draft_extends_it(api):
    edit(api, "Draft", autoPublish=False)

    answer = api.patch(agent_path(), {"description": "More", "autoPublish": False}).body

    assert (answer["instructions"], answer["description"]) == ("Draft", "More")
    assert state(api) == (1, 3, True)
    third = api.get(version_path(version_id(api, 3))).body
    assert (third["basedOn"], third["changedFields"]) == (2, ["description"])


def test_activating_without_a_draft_moves_the_head(api):
    edit(api, "Two")

    api.post(version_path(version_id(api, 1), "activate"))

    assert state(api) == (1, 1, False)
    assert api.get(f"{agent_path()}?status=draft").body["instructions"] == "Greet guests."


def test_restore_keeps_a_draft_in_the_history(api):
    edit(api, "Draft", autoPublish=False)

    answer = api.post(version_path(version_id(api, 1), "restore")).body

    assert (answer["versionNumber"], answer["basedOn"]) == (3, 2)
    assert state(api) == (3, 3, False)
    assert api.get(version_path(version_id(api, 2))).body["snapshot"]["instructions"] == "Draft"


def test_a_manual_snapshot_of_a_draft_equals_it(api):
    edit(api, "Draft", autoPublish=False)

    answer = api.post(agent_path("concierge", "versions"), {"name": "Keep"}).body

    assert (answer["basedOn"], answer["snapshot"]["instructions"]) == (2, "Draft")
    assert state(api) == (1, 3, True)


def test_deleting_an_old_version_moves_no_pointer(api):
    edit(api, "Two")
    edit(api, "Draft", autoPublish=False)

    api.delete(version_path(version_id(api, 1)))

    assert state(api) == (2, 3, True)
