"""Filters by metadata: what is valid, and that the databases match the same rows as the filter in Python."""

import random

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcms.wire.metadata_filter import FilterError, metadata_matches, parse_filter
from knowledge_app.models import Chunk, KnowledgeBase, KnowledgeIndex
from knowledge_app.search.filter_queries import to_query
from tests.conftest import DRILL

KEYS = ("a", "b.c", "tags")
TEXTS = ["", "a", "ab", "B", "Ä", "😀", "%", "_", "'", '"', "\\", "1", "true", "null", "a'; DROP TABLE x; --"]
NUMBERS = [0, 1, -1, 1.0, 0.1, 2, 10, 1e22, 1.5e-7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 10**22]
SCALARS = [*TEXTS, *NUMBERS, True, False]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)  # others are refused
texts_and_numbers = st.one_of(st.sampled_from(TEXTS), st.sampled_from(NUMBERS), texts, st.floats(-9, 9))
scalars = st.one_of(texts_and_numbers, st.booleans())
values = st.one_of(scalars, st.none())


def operators():
    return st.one_of(
        values,
        st.builds(lambda name, value: {name: value}, st.sampled_from(["$eq", "$ne"]), values),
        st.builds(
            lambda name, value: {name: value}, st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), texts_and_numbers
        ),
        st.builds(lambda name, items: {name: items}, st.sampled_from(["$in", "$nin"]), st.lists(values, max_size=4)),
        st.builds(lambda value: {"$contains": value}, scalars),
        st.builds(lambda value: {"$not": {"$contains": value}}, scalars),
        st.builds(lambda low, high: {"$gt": low, "$lte": high}, texts_and_numbers, texts_and_numbers),
    )


conditions = st.dictionaries(st.sampled_from(KEYS), operators(), max_size=2)
filters = st.recursive(
    conditions,
    lambda inner: st.one_of(
        st.builds(lambda name, parts: {name: parts}, st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1)),
        st.builds(lambda part: {"$not": part}, inner),
    ),
    max_leaves=5,
)
filters = filters.filter(lambda value: not any("\0" in str(part) for part in [value]))


@pytest.fixture
def index(db):
    base = KnowledgeBase.objects.create(key="base", name="Base", filterable=list(KEYS))
    return KnowledgeIndex.objects.create(base=base, name="first")


def stored_metadata():
    choose = random.Random(7)
    rows = [{}, *({"a": value} for value in [*SCALARS, None, [], {}, ["a", 1], [["a"], True], {"a": 1}])]
    for _ in range(40):
        tags = choose.sample(SCALARS, choose.randint(0, 4))
        rows.append({"a": choose.choice(SCALARS), "b.c": choose.choice(SCALARS), "tags": tags, "c": 1})
    return rows


@pytest.mark.django_db
def test_the_database_matches_what_the_filter_matches(index):
    rows = [
        Chunk(index=index, key=str(number), text_hash="", scale=1, data=b"", metadata=metadata)
        for number, metadata in enumerate(stored_metadata())
    ]
    Chunk.objects.bulk_create(rows)

    @settings(max_examples=10_000 if DRILL else 200, deadline=None, database=None)
    @given(filters)
    def check(value):
        condition = parse_filter(value, KEYS)
        expected = {row.key for row in rows if metadata_matches(condition, row.metadata)}
        assert {*Chunk.objects.filter(to_query(condition)).values_list("key", flat=True)} == expected

    check()


@pytest.mark.django_db
@pytest.mark.parametrize(("value", "expected"), [(10**22, ["large"]), (10**23, []), (-(10**22), ["large", "small"])])
def test_a_model_may_filter_by_a_number_beyond_64_bits(index, value, expected):
    for key, number in {"large": 10**22, "small": 1}.items():
        Chunk.objects.create(index=index, key=key, text_hash="", scale=1, data=b"", metadata={"a": number})

    rows = Chunk.objects.filter(to_query(parse_filter({"a": {"$gte": value}}, KEYS)))

    assert sorted(rows.values_list("key", flat=True)) == expected


@pytest.mark.django_db
def test_keys_and_values_are_parameters_of_the_query(index):
    condition = parse_filter({"a": "a'; DROP TABLE x; --", "tags": {"$contains": "' OR 1=1"}}, KEYS)

    sql, parameters = Chunk.objects.filter(to_query(condition)).query.sql_with_params()

    assert "DROP" not in sql
    assert "OR 1=1" not in sql
    assert "tags" not in sql
    assert "DROP TABLE" in str(parameters)
    assert connection.vendor in ("sqlite", "postgresql")


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("a", ""),
        ([], ""),
        ({"unknown": 1}, "unknown"),
        ({"$where": "1"}, "$where"),
        ({"a": {"$regex": "x"}}, "a.$regex"),
        ({"a": {}}, "a"),
        ({"a": [1]}, "a"),
        ({"a": {"$in": 1}}, "a.$in"),
        ({"a": {"$in": [[1]]}}, "a.$in[0]"),
        ({"a": {"$gt": True}}, "a.$gt"),
        ({"a": {"$gt": None}}, "a.$gt"),
        ({"a": {"$contains": None}}, "a.$contains"),
        ({"a": {"$not": 1}}, "a.$not"),
        ({"$and": []}, "$and"),
        ({"$or": {"a": 1}}, "$or"),
        ({"$or": [{"a": 1}, 1]}, "$or[1]"),
        ({"a": "x" * 1001}, "a"),
        ({"a": "\0"}, "a"),
        ({"$or": [{"a": 1}] * 101}, "$or[100].a"),
        ({"$or": [{}] * 101}, "$or[100]"),
        ({"$and": [{"a": {"$in": []}}] * 101}, "$and[100].a.$in"),
        ({"$not": {"$not": {"$not": {"$not": {"$not": {"$not": {"$not": {"$not": {"a": 1}}}}}}}}}, None),
    ],
)
def test_an_invalid_filter_names_its_fault(value, field):
    with pytest.raises(FilterError) as raised:
        parse_filter(value, KEYS)

    assert field is None or raised.value.field == field
    assert raised.value.message.endswith(".")


def test_the_empty_filter_matches_everything():
    assert metadata_matches(parse_filter({}, ()), {"a": 1})
    assert metadata_matches(parse_filter(None, ()), {})
