import pytest
from hypothesis import given

from agentcms.wire.validation import MAX_JSON_DEPTH, find_json_faults
from tests.agentcms.wire.test_canonical import VALUES, as_jsonb


def nest(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


@given(VALUES)
def test_valid_json_has_no_faults_before_or_after_jsonb(value):
    assert list(find_json_faults(value)) == []
    assert list(find_json_faults(as_jsonb(value))) == []


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"metadata": {"a": [0, 0, 0, {"b": "x\0"}]}}, "metadata.a[3].b"),
        ({"a": "\ud800"}, "a"),
        ({"a\0": 1}, "a\\u0000"),
        ({"\udfff": 1}, "\\udfff"),
        ([2**63], "[0]"),
        ([-(2**63) - 1], "[0]"),
        ([10**400], "[0]"),
        (float("inf"), ""),
        ({"a": float("nan")}, "a"),
        ({"a": {1, 2}}, "a"),
        ({"a": b"x"}, "a"),
        ({1: "x"}, "1"),
    ],
)
def test_a_fault_is_named_by_its_path(value, field):
    faults = list(find_json_faults(value))

    assert [fault.field for fault in faults] == [field]
    assert faults[0].message.endswith(".")


def test_all_faults_are_found_at_once():
    assert [fault.field for fault in find_json_faults({"a": "\0", "b": [1, "\ud800"], "c": 2**70 + 1})] == [
        "a",
        "b[1]",
        "c",
    ]


def test_a_given_path_is_a_prefix_and_counts_as_a_level():
    assert [fault.field for fault in find_json_faults({"a": "\0"}, "metadata")] == ["metadata.a"]
    assert list(find_json_faults(nest(MAX_JSON_DEPTH - 1), "metadata")) == []
    assert len(list(find_json_faults(nest(MAX_JSON_DEPTH), "metadata"))) == 1


@pytest.mark.parametrize(("levels", "count"), [(MAX_JSON_DEPTH, 0), (MAX_JSON_DEPTH + 1, 1), (100_000, 1)])
def test_json_deeper_than_64_levels_is_a_fault(levels, count):
    assert len(list(find_json_faults(nest(levels)))) == count


@pytest.mark.parametrize(
    "value", ["\x01\x7f\u2028", "👩‍👩‍👧 مرحبا", {"__proto__": 1}, 2**63 - 1, -(2**63), 5e-324, (1,)]
)
def test_unusual_valid_values_pass(value):
    assert list(find_json_faults(value)) == []


def test_a_long_key_is_shortened():
    (fault,) = find_json_faults({"k" * 1_000_000: "\0"})

    assert len(fault.field) < 200
