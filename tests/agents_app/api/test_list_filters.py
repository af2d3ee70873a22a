"""Filters, search and cursors of the list of agents."""

import json
from base64 import urlsafe_b64encode
from urllib.parse import quote, urlencode

import pytest

from agents_app.models import AgentIndex
from tests.api_client import AGENTS, Caller, agent_path
from tests.factories import api_key, member


def ids(api, **query):
    answer = api.get(f"{AGENTS}?{urlencode(query)}")
    assert answer.status_code == 200, answer.body
    assert answer.body.get("total", len(answer.body["agents"])) == len(answer.body["agents"])
    return sorted(agent["id"] for agent in answer.body["agents"])


# --- Reads


def test_an_agent_is_read_by_state_or_version(api):
    first = api.create().body
    api.patch(agent_path(), {"name": "Two"})
    draft = api.patch(agent_path(), {"name": "Draft", "autoPublish": False}).body

    read = {query: api.get(f"{agent_path()}?{query}").body for query in ("status=published", "status=draft")}

    assert (read["status=published"]["name"], read["status=draft"]["name"]) == ("Two", "Draft")
    assert read["status=draft"] == draft
    by_id = api.get(f"{agent_path()}?versionId={first['activeVersionId']}").body
    assert (by_id["name"], by_id["resolvedVersionId"]) == ("Concierge", first["activeVersionId"])
    assert by_id["activeVersionNumber"] == 2
    assert api.get(f"{agent_path()}?versionNumber=1").body == by_id


@pytest.mark.parametrize(
    "query", ["versionNumber=9", "versionId=nonsense", "versionId=00000000-0000-7000-8000-000000000000"]
)
def test_reading_a_missing_version_is_404(api, query):
    api.create()

    answer = api.get(f"{agent_path()}?{query}")

    assert (answer.status_code, answer.body["error"]) == (
        404,
        f"Version with id {query.partition('=')[2]} not found for agent concierge",
    )


@pytest.mark.parametrize(
    "query", ["status=live", "versionNumber=0", "versionNumber=x", "versionNumber=99999999999999"]
)
def test_reading_with_an_invalid_parameter_is_refused(api, query):
    api.create()

    assert api.get(f"{agent_path()}?{query}").body["code"] == "invalid_query"


# --- Owner and metadata


def test_agents_are_filtered_by_owner(api):
    user = member("publisher", "acme")
    user.memberships.create(owner_id="other", role="publisher")
    both = Caller(api_key(user))
    both.create("a", ownerId="acme")
    both.create("b", ownerId="other")

    assert ids(both, ownerId="acme") == ids(both, authorId="acme") == ["a"]
    assert ids(both) == ["a", "b"]
    assert ids(both, ownerId="nobody") == []
    assert ids(api, ownerId="acme") == []


METADATA = {
    "text": {"team": {"name": "x"}, "n": "1"},
    "number": {"team": {"name": "x", "more": 2}, "n": 1},
    "float": {"n": 1.0, "t": 0.5},
    "flag": {"n": True},
    "none": {"n": None},
    "list": {"n": [1, 2]},
    "longer": {"n": [1, 2, 3]},
    "empty": {"n": {}},
    "deep": {"n": {"a": 1}, 'q"u.o[0]te': "y"},
}


@pytest.mark.parametrize(
    ("query", "expected_ids"),
    [
        ({"n": 1}, ["float", "number"]),
        ({"n": "1"}, ["text"]),
        ({"n": True}, ["flag"]),
        ({"n": None}, ["none"]),
        ({"n": [1, 2]}, ["list"]),
        ({"n": {}}, ["empty"]),
        ({"n": {"a": 1}}, ["deep"]),
        ({"t": 0.5}, ["float"]),
        ({"team": {"name": "x"}}, ["number", "text"]),
        ({"team": {"name": "x"}, "n": 1}, ["number"]),
        ({'q"u.o[0]te': "y"}, ["deep"]),
        ({"n": {"0": 1}}, []),
        ({"team": "x"}, []),
        ({}, sorted(METADATA)),
    ],
)
def test_metadata_is_filtered_by_path_and_type(api, query, expected_ids):
    for agent_id, metadata in METADATA.items():
        api.create(agent_id, metadata=metadata)

    assert ids(api, metadata=json.dumps(query)) == expected_ids


def test_metadata_in_brackets_is_compared_as_text(api):
    for agent_id, metadata in METADATA.items():
        api.create(agent_id, metadata=metadata)

    assert ids(api, **{"metadata[n]": "1"}) == ["text"]
    assert ids(api, **{"metadata[team][name]": "x"}) == ["number", "text"]


# --- Search


TEXTS = {
    "greeter": "Greet the guests, politely and briefly.",
    "billing": "Answer questions about invoices.",
    "german": "Grüße die Gäste. STRASSE und Straße.",
    "japanese": "お客様に丁寧に挨拶してください。日本語で答える",
    "russian": "Отвечай вежливо",
    "hindi": "नमस्ते दुनिया",
    "code": "Use foo_bar-baz v2.3 (quickly)!",
}


@pytest.mark.parametrize(
    ("typed", "expected_ids"),
    [
        ("greet", ["greeter"]),
        ("GUESTS polite", ["greeter"]),
        ("polite guests", []),
        ("guests greet", ["greeter"]),
        ('"the guests"', ["greeter"]),
        ('"guests the"', []),
        ('"the guests" brief', ["greeter"]),
        ('"the gue', ["greeter"]),
        ('"the gue"', []),
        ("answering", []),
        ("answer", ["billing"]),
        ("grüsse", ["german"]),
        ("strasse", ["german"]),
        ("日本", ["japanese"]),
        ("本日", []),
        ("挨拶", ["japanese"]),
        ("вежл", ["russian"]),
        ("नमस्ते", ["hindi"]),
        ("foo_bar", ["code"]),
        ("bar-baz v2.3", ["code"]),
        ("code", ["code"]),
        ("concierge", sorted(TEXTS)),
        ('"', sorted(TEXTS)),
        ("", sorted(TEXTS)),
        ("*", sorted(TEXTS)),
        ("a AND NOT (", []),
        ('foo" OR 1=1 --', []),
        ("' & | ! :* \\", sorted(TEXTS)),
        ("x" * 5000, []),
        ("🙂", sorted(TEXTS)),
    ],
)
def test_search_matches_all_words_and_the_last_as_a_prefix(api, typed, expected_ids):
    for agent_id, text in TEXTS.items():
        api.create(agent_id, instructions=text)

    assert ids(api, search=typed) == expected_ids


@pytest.mark.parametrize("typed", ["ジョン・スミス", "・", '"ン・ス"', "ン・", "ជំរាប។", "100฿", "say 100฿"])
def test_search_finds_the_signs_of_a_script_without_spaces(api, typed):
    api.create("a", instructions="say ジョン・スミス now, ជំរាប។ 100฿")
    api.create("b", instructions="say ジョンスミス now, ជំរាប 100")

    assert ids(api, search=typed) == ["a"]


def test_search_covers_id_name_and_description_separately(api):
    api.create("front-desk", name="Night porter", description="Keys of the house", instructions="Sleep never")

    for typed in ("front", "porter", "keys", '"night porter"', '"front desk"'):
        assert ids(api, search=typed) == ["front-desk"]
    assert ids(api, search='"porter keys"') == []


def test_filters_apply_to_the_state_named_by_status(api):
    api.create("a", name="Alpha", metadata={"k": 1})
    api.patch(agent_path("a"), {"name": "Zulu", "metadata": {"k": 2}, "autoPublish": False})
    api.create("m", name="Mike")

    for status, name, value in (("published", "alpha", 1), ("draft", "zulu", 2)):
        assert ids(api, status=status, search=name) == ["a"]
        assert ids(api, status=status, metadata=json.dumps({"k": value})) == ["a"]
        assert ids(api, status=status, metadata=json.dumps({"k": 3 - value})) == []
    order = {"orderBy[field]": "name", "orderBy[direction]": "ASC"}
    names = [
        [agent["name"] for agent in api.get(f"{AGENTS}?{urlencode({**order, 'status': status})}").body["agents"]]
        for status in ("published", "draft")
    ]
    assert names == [["Alpha", "Mike"], ["Mike", "Zulu"]]


def test_the_index_follows_the_live_and_head_versions(api):
    api.create("a", instructions="one")
    version = api.get(agent_path("a")).body["activeVersionId"]
    api.patch(agent_path("a"), {"instructions": "two"})
    assert (ids(api, search="one"), ids(api, search="two")) == ([], ["a"])

    api.post(agent_path("a", "versions", version, "activate"))
    assert (ids(api, search="one"), ids(api, search="two")) == (["a"], [])

    api.patch(agent_path("a"), {"instructions": "three", "autoPublish": False})
    api.patch(agent_path("a"), {"description": "four"})
    assert ids(api, search="one four") == ids(api, search="three", status="draft") == ["a"]

    api.post(agent_path("a", "discard-draft"))
    assert ids(api, search="three", status="draft") == []
    assert ids(api, search="four", status="draft") == ["a"]

    api.delete(agent_path("a"))
    assert ids(api, search="four") == []


# --- Cursors


@pytest.mark.parametrize("field", ["createdAt", "updatedAt", "name"])
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_a_cursor_returns_the_whole_list_in_order(api, field, direction):
    for number in range(7):
        api.create(f"a{number}", name=f"Name {number // 3}")
    order = urlencode({"orderBy[field]": field, "orderBy[direction]": direction, "perPage": 3})
    whole = [agent["id"] for agent in api.get(f"{AGENTS}?{order.replace('perPage=3', '')}").body["agents"]]

    walked, cursor = [], ""
    while cursor is not None:
        page = api.get(f"{AGENTS}?{order}&cursor={quote(cursor)}").body
        assert "total" not in page
        assert page["hasMore"] == (page["nextCursor"] is not None)
        walked += [agent["id"] for agent in page["agents"]]
        cursor = page["nextCursor"]

    assert walked == whole


def test_a_cursor_ordered_by_name_uses_the_requested_state(api):
    for name in "abcdef":
        api.create(f"id-{name}", name=name)
    api.patch(agent_path("id-a"), {"name": "z", "autoPublish": False})
    order = urlencode({"orderBy[field]": "name", "orderBy[direction]": "ASC", "perPage": 2})

    walked, cursor = [], ""
    while cursor is not None:
        page = api.get(f"{AGENTS}?{order}&cursor={quote(cursor)}").body
        walked += [agent["name"] for agent in page["agents"]]
        cursor = page["nextCursor"]

    assert walked == [*"abcdef"]


@pytest.mark.parametrize("cursor", ["x", "e30", "W10", "WyJuYW1lIiwiREVTQyIsMSwyXQ", "%00", "%F0%9F%99%82"])
def test_an_invalid_cursor_is_refused(api, cursor):
    answer = api.get(f"{AGENTS}?cursor={cursor}")

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "cursor")


@pytest.mark.parametrize("timestamp", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01"])
def test_a_cursor_with_an_invalid_time_is_refused(api, timestamp):
    text = json.dumps(["createdAt", "DESC", timestamp, "x"])

    answer = api.get(f"{AGENTS}?cursor={urlsafe_b64encode(text.encode()).decode()}")

    assert (answer.status_code, answer.body["code"]) == (400, "invalid_query")


@pytest.mark.postgres_only
def test_many_metadata_filters_take_one_statement(api):
    api.create("a", metadata={str(number): [number] for number in range(300)})
    metadata = {str(number): [number] for number in range(300)}

    statement = str(AgentIndex.objects.with_metadata(metadata).query)

    assert ids(api, metadata=json.dumps(metadata)) == ["a"]
    assert ids(api, metadata=json.dumps({**metadata, "7": []})) == []
    assert statement.count("SELECT") == 2
