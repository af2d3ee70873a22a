"""Versions of agents in the API."""

import pytest

from tests.api_client import agent_path, version_path


@pytest.fixture
def versions(api):
    """Return the ids of versions 1 to 3."""
    api.create(tools=["calculator"], metadata={"team": "a"})
    api.patch(agent_path(), {"instructions": "Two\nlines", "metadata": {"team": "b"}})
    api.patch(agent_path(), {"tools": [], "changeMessage": "No tools"})
    listed = api.get(agent_path("concierge", "versions")).body["versions"]
    return [version["id"] for version in reversed(listed)]


def test_the_history_is_listed_newest_first(api, versions):
    page = api.get(agent_path("concierge", "versions") + "?perPage=2").body

    assert [version["versionNumber"] for version in page.pop("versions")] == [3, 2]
    assert page == {"total": 3, "page": 0, "perPage": 2, "hasMore": True}


@pytest.mark.parametrize(
    "order",
    [
        "orderBy[field]=versionNumber&orderBy[direction]=ASC",
        "orderBy=createdAt&sortDirection=ASC",
        'orderBy={"field":"versionNumber","direction":"ASC"}',
    ],
)
def test_the_history_is_ordered_in_any_of_three_forms(api, versions, order):
    page = api.get(f"{agent_path('concierge', 'versions')}?{order}").body

    assert [version["id"] for version in page["versions"]] == versions


def test_a_version_records_changes_message_and_author(api, versions):
    version = api.get(version_path(versions[2])).body

    assert version["agentId"] == "concierge"
    assert (version["changedFields"], version["changeMessage"], version["basedOn"]) == (["tools"], "No tools", 2)
    assert (version["author"], version["source"], version["isActive"], version["isHead"]) == (
        "penny",
        "api",
        True,
        True,
    )
    assert version["snapshot"]["metadata"] == {"team": "b"}
    assert "id" not in version["snapshot"]


@pytest.mark.parametrize("unknown", ["nonsense", "00000000-0000-4000-8000-000000000000", "1", "live"])
def test_an_unknown_or_malformed_version_id_is_not_found(api, versions, unknown):
    expected = f"Version with id {unknown} not found for agent concierge"

    assert api.get(version_path(unknown)).body["error"] == expected
    for method, path in (("POST", "activate"), ("POST", "restore")):
        assert api.call(method, version_path(unknown, path)).body["error"] == expected
    assert api.delete(version_path(unknown)).body["error"] == expected


def test_a_version_of_another_agent_is_not_found(api, versions):
    api.create("other")

    assert api.get(version_path(versions[0], agent_id="other")).status_code == 404
    assert api.post(version_path(versions[0], "restore", agent_id="other")).status_code == 404


def test_two_versions_are_compared_by_field_and_by_path(api, versions):
    answer = api.get(f"{agent_path('concierge', 'versions', 'compare')}?from={versions[0]}&to={versions[2]}").body

    assert {diff["field"]: (diff["previousValue"], diff["currentValue"]) for diff in answer["diffs"]} == {
        "instructions": ("Greet guests.", "Two\nlines"),
        "tools": (["calculator"], []),
        "metadata": ({"team": "a"}, {"team": "b"}),
    }
    assert answer["summary"].startswith("Instructions (+2 −1 lines), tools and metadata changed")
    assert {detail["path"]: detail["kind"] for detail in answer["details"]} == {
        "tools[0]": "removed",
        "metadata.team": "changed",
    }
    assert (answer["fromVersion"]["id"], answer["toVersion"]["id"]) == (versions[0], versions[2])
    assert answer["toVersion"] == api.get(version_path(versions[2])).body


def test_live_and_head_name_versions_in_a_comparison(api, versions):
    api.patch(agent_path(), {"name": "Draft", "autoPublish": False})

    answer = api.get(f"{agent_path('concierge', 'versions', 'compare')}?from=live&to=head").body

    assert [diff["field"] for diff in answer["diffs"]] == ["name"]
    assert (answer["fromVersion"]["versionNumber"], answer["toVersion"]["versionNumber"]) == (3, 4)


def test_a_version_compared_with_itself_has_no_differences(api, versions):
    answer = api.get(f"{agent_path('concierge', 'versions', 'compare')}?from=live&to={versions[2]}").body

    assert (answer["diffs"], answer["summary"]) == ([], "Version 3 is compared with itself.")


def test_versions_of_equal_content_are_identical(api, versions):
    restored = api.post(version_path(versions[2], "restore")).body

    answer = api.get(f"{agent_path('concierge', 'versions', 'compare')}?from={versions[2]}&to={restored['id']}").body

    assert (answer["diffs"], answer["summary"]) == ([], "Versions 3 and 4 are identical.")


def test_compare_needs_two_versions_of_this_agent(api, versions):
    api.create("other")
    foreign = api.get(agent_path("other")).body["activeVersionId"]
    compare = agent_path("concierge", "versions", "compare")

    missing = api.get(f"{compare}?from=live")

    assert [issue["field"] for issue in missing.body["issues"]] == ["to"]
    assert api.get(f"{compare}?from=live&to={foreign}").status_code == 404
    assert api.get(f"{compare}?from={foreign}&to=live").status_code == 404


def test_name_message_and_pin_of_a_version_can_be_changed(api, versions):
    version = api.patch(version_path(versions[0]), {"name": "First", "changeMessage": "Why", "pinned": True}).body

    assert (version["name"], version["changeMessage"], version["pinned"]) == ("First", "Why", True)
    assert api.get(version_path(versions[0])).body == version
    assert api.patch(version_path(versions[0]), {"name": None, "favourite": 1}).body["name"] == ""


@pytest.mark.parametrize("field", ["snapshot", "versionNumber", "createdAt", "author", "id"])
def test_other_fields_of_a_version_cannot_be_changed(api, versions, field):
    answer = api.patch(version_path(versions[0]), {field: "x", "name": "New"})

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, field)
    assert api.get(version_path(versions[0])).body["name"] == ""


def test_a_too_long_name_or_message_is_refused(api, versions):
    answer = api.post(agent_path("concierge", "versions"), {"name": "x" * 101, "changeMessage": "y" * 501})

    assert {issue["field"] for issue in answer.body["issues"]} == {"name", "changeMessage"}
    assert api.get(agent_path("concierge", "versions")).body["total"] == 3


def test_activating_twice_has_no_further_effect(api, versions):
    first = api.post(version_path(versions[0], "activate")).body

    assert api.post(version_path(versions[0], "activate")).body == first
    assert api.get(agent_path("concierge", "activations")).body["total"] == 4
