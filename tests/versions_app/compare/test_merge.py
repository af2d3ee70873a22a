"""The three-way merge of configurations."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from versions_app.compare.merge import (
    ChangesTouch,
    find_hunks,
    merge_entries,
    merge_keys,
    merge_models,
    merge_objects,
    merge_sequences,
    merge_snapshots,
    merge_texts,
)

BASE = {
    "name": "Concierge",
    "instructions": "Greet guests.\nAnswer briefly.\nStay calm.",
    "model": {"provider": "demo", "name": "echo", "temperature": 1},
    "tools": ["search"],
    "metadata": {"team": "hotel", "tags": ["a"]},
    "scorers": {},
}


def merged(merge, *sides):
    """Return the result of a merge, or None where changes touch."""
    try:
        return merge(*sides)
    except ChangesTouch:
        return None


# --- fields


def test_changes_of_different_fields_are_both_in_the_result():
    merge = merge_snapshots(BASE, {**BASE, "name": "Porter"}, {**BASE, "tools": ["search", "mail"]})

    assert merge.touching == []
    assert (merge.snapshot["name"], merge.snapshot["tools"]) == ("Porter", ["search", "mail"])


def test_changes_of_different_lines_are_both_in_the_result():
    mine = {**BASE, "instructions": "Greet all guests.\nAnswer briefly.\nStay calm."}
    theirs = {**BASE, "instructions": "Greet guests.\nAnswer briefly.\nStay calm.\nSay goodbye."}

    merge = merge_snapshots(BASE, mine, theirs)

    assert merge.touching == []
    assert merge.snapshot["instructions"] == "Greet all guests.\nAnswer briefly.\nStay calm.\nSay goodbye."


def test_fields_in_which_changes_touch_are_named():
    mine = {**BASE, "name": "Mine", "metadata": {"team": "front", "tags": ["a"]}, "tools": ["mine"]}
    theirs = {**BASE, "name": "Theirs", "metadata": {"team": "back", "tags": ["a"]}, "tools": ["theirs"]}

    merge = merge_snapshots(BASE, mine, theirs)

    assert merge.touching == ["name", "metadata.team"]
    assert merge.touching_labels == ["Name", "Metadata"]
    assert merge.snapshot["tools"] == ["mine", "theirs"]


# --- lines


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "result"),
    [
        ("a\nb\nc", "A\nb\nc", "a\nb\nC", "A\nb\nC"),
        ("a\nb\nc", "A\nb\nc", "A\nb\nC", "A\nb\nC"),
        ("a\nb\nc", "a\nb\nc\nd", "0\na\nb\nc", "0\na\nb\nc\nd"),
        ("a\nb\nc", "a\nb\nc\nd", "a\nb\nc\nd", "a\nb\nc\nd"),
        ("a\nb\nc\nd", "a\nb\nc", "b\nc\nd", "b\nc"),
        ("a\nb\nc", "A\nb\nc", "a\nB\nc", None),  # adjacent lines
        ("a\nb\nc", "a\nb\nc\nd", "a\nb\nc\ne", None),  # two additions at one place
        ("a\nb\nc", "a\nc", "a\nB\nc", None),
        ("", "mine", "theirs", None),
        ("x\nx", "x\nx\nx", "x\nx\nx", "x\nx\nx"),
        ("x\nx\ny", "x\nx\nx\ny", "x\ny", None),  # one side adds a line that the other removes
        ("a\n\nb\n\nc", "a\n\n\nb\n\nc", "a\n\nb\n\nC", "a\n\n\nb\n\nC"),
    ],
)
def test_texts_are_merged_by_line(base, mine, theirs, result):
    assert merged(merge_texts, base, mine, theirs) == result
    assert merged(merge_texts, base, theirs, mine) == result


def test_the_same_blank_line_is_not_added_twice():
    base, both = "a\n\nb\nc", "a\n\n\nb\nc"

    assert merge_texts(base, both, f"{both}\nd") == f"{both}\nd"


# --- lists and objects


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "result"),
    [
        ("ab", "abc", "abd", "abcd"),
        ("ab", "abc", "abc", "abc"),
        ("ab", "a", "b", ""),
        ("ab", "xab", "b", "xb"),
        ("abc", "cab", "abcd", "cdab"),
        ("abc", "cab", "cab", "cab"),
        ("abc", "cab", "bac", None),  # two orders
        ("abc", "cab", "ab", None),  # moved and removed
    ],
)
def test_keys_are_merged_by_entry(base, mine, theirs, result):
    keys = merged(merge_keys, list(base), list(mine), list(theirs))

    assert keys == (None if result is None else list(result))


def test_entries_whose_order_counts_are_merged_by_place():
    first, second, third = {"key": "mask"}, {"key": "limit"}, {"key": "check"}

    assert merge_entries([second], [first, second], [second, third]) == [first, second, third]
    assert merged(merge_entries, [first], [first, second], [first, third]) is None


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "result"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, {"a": 1, "c": 3}, {"a": 1, "b": 2, "c": 3}),
        ({"a": {"x": 1, "y": 1}}, {"a": {"x": 2, "y": 1}}, {"a": {"x": 1, "y": 2}}, {"a": {"x": 2, "y": 2}}),
        ({"a": 1, "b": 1}, {"a": 1}, {"a": 2, "b": 1}, {"a": 2}),
        ({"a": 1}, {}, {"a": 2}, None),
        ({"a": 1}, {"a": True}, {"a": 1, "b": 1}, {"a": True, "b": 1}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [0, 1]}, None),
    ],
)
def test_objects_are_merged_by_key(base, mine, theirs, result):
    assert merged(merge_objects, base, mine, theirs) == result


def test_a_model_is_not_combined_of_two():
    base = {"provider": "openai", "name": "small", "temperature": 1}

    assert merge_models(base, {**base, "name": "large"}, {**base, "temperature": 0})["name"] == "large"
    assert merged(merge_models, base, {**base, "provider": "demo"}, {**base, "name": "large"}) is None


def test_the_sampling_of_a_scorer_is_one_value():
    scorer = {"tone": {"sampling": {"type": "ratio", "rate": 0.5}}}
    mine = {"tone": {"sampling": {"type": "count", "count": 3}}}
    theirs = {"tone": {"sampling": {"type": "ratio", "rate": 0.2}}}

    merge = merge_snapshots({**BASE, "scorers": scorer}, {**BASE, "scorers": mine}, {**BASE, "scorers": theirs})

    assert merge.touching == ["scorers.tone"]


# --- properties

items = st.lists(st.sampled_from("abc \n"), max_size=12)
sides = st.tuples(items, items, items)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)


@st.composite
def edited_sequences(draw):
    """Return a sequence of distinct items and two edits of it, which add items of their own."""
    base = [f"line {number}" for number in range(draw(st.integers(0, 12)))]
    return base, *(draw(edits(base, label)) for label in ("mine", "theirs"))


@st.composite
def edits(draw, base, label):
    actions = st.sampled_from(["keep"] * 4 + ["remove", "replace", "insert"])
    result = [f"{label} top"] if draw(st.booleans()) and draw(st.booleans()) else []
    for number, line in enumerate(base):
        action = draw(actions)
        result += [line] if action in ("keep", "insert") else []
        result += [f"{label} {number}"] if action in ("replace", "insert") else []
    return result


@given(edited_sequences())
def test_no_change_of_either_side_is_lost_or_doubled(case):
    base, mine, theirs = case
    result = merged(merge_sequences, base, mine, theirs)

    if result is not None:
        remaining = {*base} & {*mine} & {*theirs}
        assert Counter(result) == Counter([*remaining, *({*mine} - {*base}), *({*theirs} - {*base})])
        assert [line for line in result if line in {*mine}] == [line for line in mine if line in {*result}]
        assert [line for line in result if line in {*theirs}] == [line for line in theirs if line in {*result}]


@given(sides)
def test_hunks_lead_from_one_sequence_to_the_other(case):
    base, changed, _ = case
    result, position = [], 0
    for hunk in find_hunks(base, changed):
        assert position <= hunk.start
        result += [*base[position : hunk.start], *hunk.items]
        position = hunk.end

    assert result + base[position:] == changed


@given(sides)
def test_a_merge_with_one_change_is_that_change(case):
    base, changed, _ = case

    assert merge_sequences(base, changed, base) == changed
    assert merge_sequences(base, base, changed) == changed
    assert merge_sequences(base, changed, changed) == changed


@given(sides)
def test_a_merge_of_sequences_does_not_depend_on_the_order_of_the_sides(case):
    base, mine, theirs = case

    assert merged(merge_sequences, base, mine, theirs) == merged(merge_sequences, base, theirs, mine)


def test_a_line_that_both_sides_moved_to_different_places_touches():
    with pytest.raises(ChangesTouch):
        merge_sequences([*"caab"], [*"baa"], [*"caba"])


@given(sides)
def test_repeated_items_are_added_and_removed_as_often_as_one_side_did(case):
    base, mine, theirs = case
    result = merged(merge_sequences, base, mine, theirs)

    if result is not None:
        for item in {*base, *mine, *theirs}:
            changes = [side.count(item) - base.count(item) for side in (mine, theirs)]
            total = result.count(item) - base.count(item)
            assert min(*changes, sum(changes)) <= total <= max(*changes, sum(changes))


distinct = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@given(distinct, distinct, distinct)
def test_no_key_of_a_list_is_lost_or_doubled(base, mine, theirs):
    result = merged(merge_keys, base, mine, theirs)

    if result is not None:
        remaining = {*base} & {*mine} & {*theirs}
        assert len(result) == len({*result})
        assert {*result} == remaining | ({*mine} - {*base}) | ({*theirs} - {*base})


@given(json_objects, json_objects, json_objects)
def test_every_member_of_merged_objects_comes_from_the_side_that_changed_it(base, mine, theirs):
    result = merged(merge_objects, base, mine, theirs)

    if result is not None:
        for key in "abc":
            values = [repr(side.get(key, "missing")) for side in (base, mine, theirs, result)]
            if values[0] == values[1]:
                assert values[3] == values[2]
            elif values[0] == values[2] or values[1] == values[2]:
                assert values[3] == values[1]
