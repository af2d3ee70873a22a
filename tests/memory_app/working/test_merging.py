"""The merge of updates into a working memory with a schema."""

import pytest

from memory_app.working.merging import merge_working_memory


def nested(depth, value):
    for _ in range(depth):
        value = {"a": value}
    return value


TABLE = [
    ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ({"a": 1}, {"a": 2}, {"a": 2}),
    ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    ({"a": 1}, {"b": None}, {"a": 1}),
    ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
    ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
    ({"a": [1, 2, 3]}, {"a": [4]}, {"a": [4]}),
    ({"a": [1]}, {"a": []}, {"a": []}),
    ({"a": [{"b": 1}]}, {"a": [{"c": None}]}, {"a": [{"c": None}]}),
    ({"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ({"a": {"b": 1}}, {"a": "x"}, {"a": "x"}),
    ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ({"a": 1}, {}, {"a": 1}),
    ({"a": 0}, {"a": False}, {"a": False}),
    (None, {"a": 1}, {"a": 1}),
    (nested(50, {"x": 1, "y": 2}), nested(50, {"x": None, "z": 3}), nested(50, {"y": 2, "z": 3})),
]


@pytest.mark.parametrize(("stored", "update", "merged"), TABLE, ids=range(len(TABLE)))
def test_an_update_is_merged(stored, update, merged):
    assert merge_working_memory(stored, update) == merged
