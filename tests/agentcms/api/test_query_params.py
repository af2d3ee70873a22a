import json
from datetime import UTC, datetime
from types import SimpleNamespace
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.errors import BadRequest

FIELDS = ("createdAt", "name")
DEFAULT = OrderBy("createdAt")


def query(text):
    return QueryParams(SimpleNamespace(META={"QUERY_STRING": text}))


def refused(text, read):
    """Return the fields with errors."""
    with pytest.raises(BadRequest) as caught, query(text) as reader:
        read(reader)
    assert caught.value.error == "Invalid query parameters"
    return [field for field, _ in caught.value.issues]


def order(text):
    with query(text) as reader:
        order = reader.order_by(FIELDS, DEFAULT)
    return order.field, order.direction


def metadata(text):
    with query(text) as reader:
        return reader.json_object("metadata")


def test_paging_has_defaults():
    with query("") as reader:
        paging = reader.paging(20)

    assert (paging.page, paging.per_page, paging.start, paging.stop) == (0, 20, 0, 20)


def test_paging_is_parsed():
    with query("page=2&perPage=1000") as reader:
        paging = reader.paging(20)

    assert (paging.start, paging.stop) == (2000, 3000)


@pytest.mark.parametrize(
    "value",
    ["-1", "1.0", "1e3", "+1", " 1", "", "x", "0x10", "٣", "1_0", "99999999999", "9" * 5000, "2147483648", "null"],
)
def test_an_invalid_page_is_refused_by_name(value):
    text = urlencode({"page": value})

    assert refused(text, lambda reader: reader.paging(20)) == ["page"]


@pytest.mark.parametrize("value", ["0", "1001", "-5", "false", "1,2"])
def test_an_invalid_page_size_is_refused_by_name(value):
    assert refused(f"perPage={value}", lambda reader: reader.paging(20)) == ["perPage"]


def test_all_errors_are_reported_together():
    assert refused("page=x&perPage=y&strict=z", lambda r: (r.paging(20), r.boolean("strict"))) == [
        "page",
        "perPage",
        "strict",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("createdAt", "DESC")),
        ("orderBy[field]=name&orderBy[direction]=ASC", ("name", "ASC")),
        ("orderBy%5Bfield%5D=name", ("name", "DESC")),
        ("orderBy[direction]=ASC", ("createdAt", "ASC")),
        ("orderBy=" + quote('{"field":"name","direction":"ASC"}'), ("name", "ASC")),
        ("orderBy=" + quote('{"direction":"ASC"}'), ("createdAt", "ASC")),
        ("orderBy=%7B%7D", ("createdAt", "DESC")),
        ("orderBy=name&sortDirection=ASC", ("name", "ASC")),
        ("orderBy=name", ("name", "DESC")),
        ("sortDirection=ASC", ("createdAt", "ASC")),
    ],
)
def test_an_order_is_parsed_in_three_forms(text, expected):
    assert order(text) == expected


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("orderBy[field]=id", "orderBy.field"),
        ("orderBy[field]=", "orderBy.field"),
        ("orderBy[field][x]=name", "orderBy.field"),
        ("orderBy[direction]=asc", "orderBy.direction"),
        ("orderBy=password", "orderBy.field"),
        ("orderBy=", "orderBy.field"),
        ("orderBy=name&sortDirection=sideways", "sortDirection"),
        ("orderBy[field]=name&sortDirection=asc", "sortDirection"),
        ("orderBy[direction]=asc&sortDirection=ASC", "orderBy.direction"),
        ('orderBy={"field":["name"]}', "orderBy.field"),
        ('orderBy={"field":', "orderBy"),
        ("orderBy=name&orderBy=name", "orderBy"),
        ("orderBy[field]=name&orderBy[field]=name", "orderBy[field]"),
    ],
)
def test_an_invalid_order_is_refused(text, field):
    assert refused(text, lambda reader: reader.order_by(FIELDS, DEFAULT)) == [field]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("metadata[tier]=1&metadata[team][lead]=Ada+L", {"tier": "1", "team": {"lead": "Ada L"}}),
        ("metadata[a.b]=", {"a.b": ""}),
        ("metadata[__proto__]=x", {"__proto__": "x"}),
        ("metadata=" + quote('{"tier":1,"on":true,"a":{"b":null}}'), {"tier": 1, "on": True, "a": {"b": None}}),
        ("metadata=%7B%7D", {}),
    ],
)
def test_metadata_is_parsed_from_brackets_and_from_json(text, expected):
    assert json.dumps(metadata(text)) == json.dumps(expected)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("metadata=x", "metadata"),
        ("metadata=[]", "metadata"),
        ("metadata=", "metadata"),
        ("metadata={}&metadata[a]=1", "metadata"),
        ("metadata[a]=1&metadata[a]=2", "metadata[a]"),
        ("metadata[a]=1&metadata[a][b]=2", "metadata[a][b]"),
        ("metadata[a][b]=1&metadata[a]=2", "metadata[a]"),
        ("metadata[a=1", "metadata[a"),
        ("metadata[a]b=1", "metadata[a]b"),
        ('metadata={"a":"\\ud800"}', "metadata.a"),
        ('metadata={"a":{"b":1e400}}', "metadata.a.b"),
        ("metadata=[1e400]", "metadata[0]"),
    ],
)
def test_invalid_metadata_is_refused(text, field):
    assert refused(text, lambda reader: reader.json_object("metadata")) == [field]


def test_metadata_deeper_than_64_levels_is_refused():
    assert len(refused("metadata" + "[a]" * 20_000 + "=x", lambda reader: reader.json_object("metadata"))) == 1


@pytest.mark.parametrize("value", ["%00", "a%00b", "%ff", "%ED%A0%80", "%C3"])
def test_nul_and_invalid_utf8_are_refused_in_any_parameter(value):
    assert refused(f"whatever={value}", lambda reader: None) == ["whatever"]


@pytest.mark.parametrize("text", ["requestContext=%ff%00", "requestContext=", "requestContext=a&requestContext=b"])
def test_any_request_context_is_ignored(text):
    with query(text) as reader:
        assert reader.values == {}


def test_unknown_parameters_are_ignored():
    with query("x=1&x=2&&=&y&page=1") as reader:
        assert reader.paging(20).page == 1


def test_a_repeated_parameter_is_refused():
    assert refused("page=1&page=1", lambda reader: reader.paging(20)) == ["page"]


@pytest.mark.parametrize(("text", "expected"), [("", False), ("strict=true", True), ("strict=false", False)])
def test_a_boolean_is_parsed(text, expected):
    with query(text) as reader:
        assert reader.boolean("strict") is expected


@pytest.mark.parametrize("value", ["1", "yes", "True", ""])
def test_a_boolean_is_only_true_or_false(value):
    assert refused(f"strict={value}", lambda reader: reader.boolean("strict")) == ["strict"]


def test_a_parameter_that_is_read_twice_has_its_fault_once():
    assert refused("strict=x", lambda reader: (reader.boolean("strict"), reader.boolean("strict"))) == ["strict"]


def test_a_timestamp_is_parsed_or_refused():
    with query("at=2026-01-31T09:30:00.000Z") as reader:
        assert reader.timestamp("at") == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
    assert refused("at=yesterday", lambda reader: reader.timestamp("at")) == ["at"]


def test_an_error_inside_the_block_is_not_hidden():
    def fail(reader):
        reader.paging(20)
        raise KeyError

    with pytest.raises(KeyError), query("page=x") as reader:
        fail(reader)


@given(st.text(alphabet='[]{}%&=+":,.\0abpageorderBymetadata0159é\ud800', max_size=60))
def test_random_queries_are_parsed_or_refused(text):
    raw = text.encode("utf-8", "surrogatepass").decode("latin-1")
    try:
        with query(raw) as reader:
            reader.paging(20)
            reader.order_by(FIELDS, DEFAULT)
            reader.json_object("metadata")
            reader.timestamp("at")
    except BadRequest as error:
        json.dumps(error.body, ensure_ascii=False).encode()


def test_a_view_reports_errors_as_400_and_returns_a_page(http):
    assert http.get("/api/rows?page=x").json()["issues"][0]["field"] == "page"
    assert http.get("/api/rows?page=1&strict=true&metadata[a]=é").json() == {
        "rows": [],
        "total": 150,
        "page": 1,
        "perPage": 100,
        "hasMore": False,
        "order": ["createdAt", "DESC"],
        "metadata": {"a": "é"},
        "strict": True,
    }
