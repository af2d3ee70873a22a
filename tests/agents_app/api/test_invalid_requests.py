"""Invalid requests, which are 4xx with a JSON error and store nothing."""

import json
from urllib.parse import quote

import pytest

from agents_app.models import Agent, IdempotencyRecord
from tests.api_client import AGENTS, MODEL, agent_path, version_path

GOOD = {"id": "x", "name": "X", "instructions": "", "model": MODEL}


def with_field(text: str) -> bytes:
    """Return a valid body with one more member, given as JSON text."""
    return f'{json.dumps(GOOD)[:-1]},"metadata":{{"a":{text}}}}}'.encode()


DEEP = "[" * 80 + "]" * 80

BODIES = {
    "nothing": b"",
    "not JSON": b"{",
    "a list": b"[]",
    "a text": b'"x"',
    "null": b"null",
    "a number": b"7",
    "trailing comma": b'{"id":"x",}',
    "two objects": b"{}{}",
    "single quotes": b"{'id':'x'}",
    "a comment": b'{"id":"x"/**/}',
    "broken UTF-8": b'{"id":"\xff\xfe"}',
    "overlong UTF-8": b'{"id":"\xc0\xaf"}',
    "a UTF-16 body": '{"id":"x"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a raw control character": b'{"id":"a\x01b"}',
    "NUL in a value": with_field('"a\\u0000b"'),
    "NUL in a key": with_field('{"a\\u0000b":1}'),
    "NUL in the name": json.dumps({**GOOD, "name": "a\0b"}).encode(),
    "a lone surrogate": with_field('"\\ud800"'),
    "a lone surrogate in a key": with_field('{"\\udfff":1}'),
    "too deep": with_field(DEEP),
    "very deep": with_field("[" * 100_000),
    "1e400": with_field("1e400"),
    "-1e400": with_field("-1e400"),
    "1e-400": with_field("1e-400"),
    "NaN": with_field("NaN"),
    "Infinity": with_field("-Infinity"),
    "a big integer": with_field("9223372036854775808"),
    "a huge integer": with_field("9" * 5000),
    "a duplicate key": with_field('{"b":1,"b":2}'),
    "a duplicate field": b'{"id":"x","id":"y"}',
    "a bare word": with_field("undefined"),
    "hexadecimal": with_field("0x10"),
    "a leading zero": with_field("01"),
    "a plus": with_field("+1"),
}

WRONG_TYPES = [
    {"name": 7},
    {"name": ""},
    {"name": " \t"},
    {"name": "\u200b\u2060 "},  # of invisible characters only
    {"name": "x" * 201},
    {"name": None},
    {"name": ["x"]},
    {"description": 1},
    {"instructions": True},
    {"instructions": None},
    {"model": "gpt"},
    {"model": []},
    {"model": {}},
    {"model": {"provider": "a"}},
    {"model": {"provider": 1, "name": "b"}},
    {"model": {"provider": "a", "name": ""}},
    {"tools": "a"},
    {"tools": {"a": 1}},
    {"tools": ["a", "a"]},
    {"tools": [""]},
    {"tools": [1]},
    {"tools": [None]},
    {"workflows": [[]]},
    {"agents": {}},
    {"integrationTools": [True]},
    {"inputProcessors": ["a"]},
    {"outputProcessors": {}},
    {"defaultOptions": []},
    {"metadata": []},
    {"metadata": "x"},
    {"memory": 7},
    {"memory": ""},
    {"memory": {}},
    {"scorers": []},
    {"scorers": {"a": 1}},
    {"scorers": {"a": {"sampling": {"type": "ratio", "rate": 1.1}}}},
    {"scorers": {"a": {"sampling": {"type": "ratio", "rate": "1"}}}},
    {"scorers": {"a": {"sampling": {"type": "ratio", "rate": True}}}},
    {"scorers": {"a": {"sampling": {"type": "count", "count": 0}}}},
    {"scorers": {"a": {"sampling": {"type": "count", "count": 1.5}}}},
    {"scorers": {"a": {"sampling": {"type": "other"}}}},
    {"scorers": {"a": {"sampling": {}}}},
    {"ownerId": 7},
    {"ownerId": "a/b"},
    {"ownerId": "x" * 129},
    {"changeMessage": 1},
    {"changeMessage": "x" * 501},
    {"autoPublish": "false"},
    {"autoPublish": 0},
]

QUERIES = [
    "page=-1",
    "page=x",
    "page=1.0",
    "page=1e3",
    "page=99999999999999999999999",
    "page=%D9%A1",
    "page=",
    "page=0&page=1",
    "perPage=0",
    "perPage=1001",
    "perPage=-5",
    "orderBy[field]=id",
    "orderBy[field]=",
    "orderBy[direction]=down",
    "orderBy={",
    "orderBy=[]",
    "orderBy=name;drop",
    "orderBy=name&orderBy[field]=name",
    "orderBy[field][x]=name",
    "sortDirection=asc",
    "metadata=[]",
    "metadata=x",
    'metadata={"a":1e400}',
    'metadata={"a":1,"a":2}',
    'metadata={"a":"%00"}',
    'metadata={"a":"\\u0000"}',
    'metadata={"a":"\\ud800"}',
    "metadata=" + quote('{"a":' * 70 + "1" + "}" * 70),
    "metadata[a=1",
    "metadata[a]=1&metadata[a][b]=2",
    "metadata[a]=%00",
    "status=nothing",
    "search=%00",
    "search=%ff",
    "search=%ed%a0%80",
    "ownerId=%00",
    "ownerId=%ff",
    "ownerId=a&authorId=b",
    "cursor=%00",
]


@pytest.fixture(autouse=True)
def _nothing_stored(api):
    yield
    assert not Agent.objects.exclude(pk="kept").exists()
    assert not IdempotencyRecord.objects.exists()


def refused(answer, *statuses):
    assert answer.status_code in (statuses or (400,)), answer.body
    assert answer.headers["Content-Type"] == "application/json"
    assert set(answer.body) >= {"error", "code"}
    assert answer.body["error"]
    for issue in answer.body.get("issues", []):
        assert set(issue) == {"field", "message"}
        assert issue["message"]
        assert " should " not in issue["message"]  # of pydantic; ours say what must be


@pytest.mark.parametrize("name", BODIES)
def test_an_invalid_body_is_refused(api, name):
    api.create("kept")
    version = Agent.objects.get().active_version_id

    refused(api.post(AGENTS, BODIES[name]))
    if BODIES[name]:
        for method, path in (
            ("PATCH", agent_path("kept")),
            ("POST", agent_path("kept", "duplicate")),
            ("POST", agent_path("kept", "versions")),
            ("PATCH", version_path(str(version), agent_id="kept")),
            ("POST", version_path(str(version), "restore", agent_id="kept")),
        ):
            refused(api.call(method, path, BODIES[name]))
    agent = Agent.objects.get()
    assert (agent.revision, agent.versions.count()) == (1, 1)


@pytest.mark.parametrize("fields", WRONG_TYPES, ids=json.dumps)
def test_an_invalid_value_is_refused_with_its_path(api, fields):
    answer = api.post(AGENTS, {**GOOD, **fields})

    refused(answer)
    assert answer.body["error"] == "Invalid request body"
    assert {issue["field"].split(".")[0].split("[")[0] for issue in answer.body["issues"]} == set(fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [1] * 1001},
        {"agents": [f"a{number}" for number in range(1001)]},
        {"inputProcessors": [{}] * 1001},
        {"scorers": dict.fromkeys(map(str, range(1001)), 1)},
    ],
    ids=list,
)
def test_more_than_a_thousand_references_of_a_kind_are_one_error(api, fields):
    answer = api.post(AGENTS, {**GOOD, **fields})

    refused(answer)
    assert answer.body["issues"] == [{"field": next(iter(fields)), "message": "List at most 1,000 items."}]


def test_only_known_fields_have_variants(api):
    answer = api.post(AGENTS, {**GOOD, "conditional": {"name": []}})

    refused(answer)
    assert answer.body["issues"] == [{"field": "conditional.name", "message": "This name is unknown. Leave it out."}]


@pytest.mark.parametrize("query", QUERIES)
def test_an_invalid_query_is_refused(api, query):
    refused(api.get(f"{AGENTS}?{query}"))


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/xml", "multipart/form-data", "application/x-www-form-urlencoded", "", "*/*"]
)
def test_a_body_that_is_not_json_is_refused(api, kind):
    answer = api.client.generic("POST", AGENTS, json.dumps(GOOD), content_type=kind)

    assert answer.status_code == 415
    assert answer.json()["code"] == "unsupported_media_type"


@pytest.mark.parametrize("packing", ["gzip", "br", "gzip, gzip", "nonsense"])
def test_a_compressed_body_is_refused(api, packing):
    refused(api.post(AGENTS, GOOD, Content_Encoding=packing), 415)


def test_a_body_that_is_too_large_is_refused(api, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000

    refused(api.post(AGENTS, {**GOOD, "instructions": "x" * 1000}), 413)


@pytest.mark.parametrize(
    "path", ["%00", "a%00b", "a%00/versions", "%ff%fe", "%ed%a0%80", "x" * 3000, "a%0ab", "..%2f..", "a%2Fb"]
)
def test_an_invalid_path_is_refused(api, path):
    refused(api.get(f"{AGENTS}/{path}"), 400, 404)
    refused(api.patch(f"{AGENTS}/{path}", {"name": "New"}), 400, 404, 405)


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "TRACE", "LINK"])
def test_an_unsupported_method_is_refused(api, method):
    for path in (AGENTS, agent_path("kept"), agent_path("kept", "versions"), "/api/nothing"):
        answer = api.call(method, path)
        refused(answer, 404, 405)
        assert method not in answer.headers.get("Allow", "")


@pytest.mark.parametrize(
    "path", ["/api", "/api/", "/api/stored", f"{AGENTS}/", "/api/stored/agents/a/b/c/d", "/api//stored/agents"]
)
def test_an_unknown_route_is_refused(api, path):
    refused(api.get(path), 404)


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer a b", "Bearer \x00", "Bearer é", "Basic YTpi", "bearer" * 1000, "Bearer acms_"],
)
def test_malformed_credentials_are_401(client, header):
    answer = client.get(AGENTS, headers={"Authorization": header})

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
@pytest.mark.parametrize("value", ["", "x", '"', '""', "W/", "*, *", '"a"' * 1000, "\xff"])
def test_malformed_preconditions_are_no_server_error(api, name, value):
    api.create("kept")

    assert api.get(agent_path("kept"), **{name: value}).status_code in (200, 304)
    assert api.patch(agent_path("kept"), {}, **{name: value}).status_code in (200, 412)


ACCEPTED = {
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈",
    "right to left": "مرحبا \u202e abc",
    "control characters": "a\u0001\u001b[31m\u007f\u0085\u2028",
    "64 bits": [2**63 - 1, -(2**63), 0],
    "tiny": [5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308],
    "exact": [0.1, 1e21, 123456789.123456789, 1e-7],
    "prototype": {"__proto__": {"admin": True}, "constructor": None},
    "null beside absent": {"a": None},
    "odd keys": {"": 1, " ": 2, "a.b[0]": 3, "$": 4, '"': 5},
    "booleans": [True, False, 1, 0, "true", "1"],
    "nested": {"a": [[[{"b": [None]}]]]},
    "long": "x" * 100_000,
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_accepted_value_is_returned_exactly(api, name):
    value = ACCEPTED[name]
    api.create("kept", metadata={"value": value}, defaultOptions={"value": value})

    for metadata in (
        api.get(agent_path("kept")).body["metadata"],
        api.get(AGENTS).body["agents"][0]["metadata"],
        api.get(agent_path("kept", "versions")).body["versions"][0]["snapshot"]["metadata"],
        api.post(agent_path("kept", "duplicate"), {"id": "copy"}).body["metadata"],
    ):
        assert json.dumps(metadata, sort_keys=True) == json.dumps({"value": value}, sort_keys=True)
    api.delete(agent_path("copy"))
