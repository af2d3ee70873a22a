"""Differences of snapshots by field, path, item, line and word."""

import sys
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.configuration.schema import WIRE_NAMES
from versions_app.compare import diff as compare_diff
from versions_app.compare.diff import Fold, ItemDiff, LinePart, PathDiff

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("abc", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=8,
)
texts = st.text(st.sampled_from("ab é🙂\u0301\t\n\n.,"), max_size=40)


# --- Fields


def test_changed_fields_are_in_the_order_of_the_configuration():
    before = {"name": "A", "tools": ["x"], "metadata": {"a": 1}, "memory": None}
    after = {"name": "B", "tools": ["x"], "metadata": {"a": 2}, "memory": "m"}

    assert compare_diff.changed_fields(before, after) == ["name", "memory", "metadata"]


def test_a_field_diff_has_both_values():
    assert compare_diff.diff_snapshots({"name": "A"}, {"name": "B"}) == [("name", "A", "B")]


def test_without_an_old_snapshot_every_set_field_differs():
    snapshot = dict.fromkeys(WIRE_NAMES.values(), "x")

    assert compare_diff.changed_fields({}, snapshot) == list(WIRE_NAMES.values())


@pytest.mark.parametrize(
    ("before", "after"), [(True, 1), (False, 0), ("1", 1), (None, False), ([], {}), ([1, 2], [2, 1])]
)
def test_equal_python_values_of_different_json_types_differ(before, after):
    assert not compare_diff.values_equal({"a": before}, {"a": after})


@pytest.mark.parametrize(("before", "after"), [(1, 1.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (0.0, -0.0)])
def test_equal_json_values_do_not_differ(before, after):
    assert compare_diff.values_equal([before], [after])


# --- Paths


def test_paths_name_added_removed_and_changed_values():
    before = {"a": {"b": 1, "gone": True}, "list": [1, 2, 3]}
    after = {"a": {"b": 2, "new": None}, "list": [1, 5]}

    assert list(compare_diff.diff_paths(before, after, "metadata")) == [
        PathDiff("metadata.a.b", "changed", 1, 2),
        PathDiff("metadata.a.gone", "removed", True),
        PathDiff("metadata.a.new", "added", None, None),
        PathDiff("metadata.list[1]", "changed", 2, 5),
        PathDiff("metadata.list[2]", "removed", 3),
    ]


def test_a_changed_type_is_one_change():
    assert list(compare_diff.diff_paths({"a": [1]}, {"a": {"0": 1}})) == [PathDiff("a", "changed", [1], {"0": 1})]


@given(json_values, json_values)
def test_paths_exist_exactly_where_values_differ(before, after):
    assert (not list(compare_diff.diff_paths(before, after))) == compare_diff.values_equal(before, after)


def replaced(value, path, new):
    """Return the value with another one at a path of keys and indexes."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


def test_a_nested_change_is_one_path():
    before = {"a": [{"b": {"c": [0, {"d": "x"}]}}]}
    after = replaced(before, ["a", 0, "b", "c", 1, "d"], "y")

    assert list(compare_diff.diff_paths(before, after)) == [PathDiff("a[0].b.c[1].d", "changed", "x", "y")]


# --- Items of lists


def test_list_items_are_kept_added_removed_and_moved():
    assert compare_diff.diff_items(["a", "b", "c", "d"], ["d", "a", "b", "e"]) == [
        ItemDiff("d", "moved"),
        ItemDiff("a", "same"),
        ItemDiff("b", "same"),
        ItemDiff("e", "added"),
        ItemDiff("c", "removed"),
    ]


keys = st.lists(st.text("abcde", min_size=1, max_size=2), unique=True, max_size=8)


@given(keys, keys)
def test_the_item_diff_reproduces_both_lists(before, after):
    items = compare_diff.diff_items(before, after)

    assert [item.item for item in items if item.kind != "removed"] == after
    assert {item.item for item in items if item.kind != "added"} == set(before)
    assert [item.item for item in items if item.kind == "same"] == [
        key for key in before if ItemDiff(key, "same") in items
    ]


# --- Lines and words


def both_texts(diff):
    """Return both texts of a line diff."""
    old = [line.text for line in diff if line.kind != "added"]
    new = [line.text for line in diff if line.kind != "removed"]
    return "\n".join(old), "\n".join(new)


@given(texts, texts)
def test_a_line_diff_reproduces_both_texts(before, after):
    diff = compare_diff.diff_lines(before, after)

    assert both_texts(diff) == (before, after)
    assert [line.before for line in diff if line.before] == list(range(1, 1 + sum(x.kind != "added" for x in diff)))
    assert [line.after for line in diff if line.after] == list(range(1, 1 + sum(x.kind != "removed" for x in diff)))


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_line_diff_reproduces_any_text(before, after):
    assert both_texts(compare_diff.diff_lines(before, after)) == (before, after)


one_line = st.text(st.sampled_from("ab é🙂\u0301\t.,"), min_size=1, max_size=30)


@given(one_line, one_line)
def test_unmarked_words_are_equal_on_both_sides(before, after):
    diff = compare_diff.diff_lines(before, after)

    if any(part.marked for line in diff for part in line.parts):
        old, new = ["".join(part.text for part in line.parts if not part.marked) for line in diff]
        assert old == new


@given(texts)
def test_a_text_has_no_diff_to_itself(text):
    assert all(line.kind == "same" for line in compare_diff.diff_lines(text, text))


def test_only_the_changed_words_of_a_line_are_marked():
    removed, added = compare_diff.diff_lines("Greet every guest warmly.", "Greet every visitor warmly.")

    assert removed.parts == [LinePart("Greet every ", False), LinePart("guest", True), LinePart(" warmly.", False)]
    assert added.parts == [LinePart("Greet every ", False), LinePart("visitor", True), LinePart(" warmly.", False)]


def test_lines_with_few_common_words_are_replaced_entirely():
    removed, added = compare_diff.diff_lines("Greet every guest warmly.", "Nobody speaks before noon.")

    assert removed.parts == [LinePart("Greet every guest warmly.", False)]
    assert added.parts == [LinePart("Nobody speaks before noon.", False)]


def test_words_of_other_scripts_are_recognized():
    removed, added = compare_diff.diff_lines("Grüße an die Küche", "Grüße an die 料理 Küche")

    assert [part.text for part in added.parts if part.marked] in (["料理 "], [" 料理"])
    assert not any(part.marked for part in removed.parts)


def test_an_added_empty_last_line_is_found():
    assert [line.kind for line in compare_diff.diff_lines("a", "a\n")] == ["same", "added"]


def test_added_and_removed_lines_are_counted():
    assert compare_diff.line_counts("a\nb\nc", "a\nx\ny\nc") == (2, 1)


def test_long_unchanged_parts_are_folded_without_loss():
    before = "\n".join(str(number) for number in range(100))
    diff = compare_diff.diff_lines(before, before.replace("\n50\n", "\nfifty\n"))

    folded = compare_diff.fold_unchanged(diff)

    assert [part.kind for part in folded] == ["fold", *["same"] * 3, "removed", "added", *["same"] * 3, "fold"]
    assert [line for part in folded for line in (part.lines if isinstance(part, Fold) else [part])] == diff


# --- Bounds, counted and not timed


@contextmanager
def count_calls():
    """Count the calls of Python and C functions during the block."""
    counted = [0]

    def count(frame, event, argument):
        counted[0] += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(None)


def test_the_diff_of_a_large_text_takes_linear_time():
    before = "\n".join(f"Line {number} of a long instruction, word by word." for number in range(4000))
    after = before.replace("7", "seven")
    assert len(before) > 170_000

    with count_calls() as counted:
        diff = compare_diff.diff_lines(before, after)

    assert both_texts(diff) == (before, after)
    assert counted[0] < 4000 * 150


def test_the_diff_of_unrelated_large_texts_takes_linear_time():
    before = "\n".join(f"a{number}" for number in range(30_000))
    after = "\n".join(f"b{number}" for number in range(30_000))

    with count_calls() as counted:
        diff = compare_diff.diff_lines(before, after)

    assert len(diff) == 60_000
    assert counted[0] < 30_000 * 100


def test_one_line_of_two_thousand_words_is_compared_word_by_word():
    words = [f"word{number % 7}" for number in range(2000)]
    changed = [word if number % 3 else f"other{number % 5}" for number, word in enumerate(words)]

    with count_calls() as counted:
        removed, added = compare_diff.diff_lines(" ".join(words), " ".join(changed))

    assert (removed.text, added.text) == (" ".join(words), " ".join(changed))
    assert any(part.marked for part in added.parts)
    assert counted[0] < 2000 * 100


def test_a_too_long_line_is_replaced_entirely():
    before = " ".join(f"a{number}" for number in range(20_000))
    after = " ".join(f"b{number}" for number in range(20_000))

    removed, added = compare_diff.diff_lines(before, after)

    assert removed.parts == [LinePart(before, False)]
    assert added.parts == [LinePart(after, False)]


def test_a_small_change_in_a_very_long_line_is_still_marked():
    before = " ".join(f"word{number}" for number in range(20_000))

    _, added = compare_diff.diff_lines(before, before.replace("word777 ", "changed "))

    assert [part.text for part in added.parts if part.marked] == ["changed"]


class CountingList(list):
    """A list that counts how often its items are read."""

    read = 0

    def __iter__(self):
        for item in super().__iter__():
            CountingList.read += 1
            yield item

    def __getitem__(self, index):
        CountingList.read += 1
        return super().__getitem__(index)


def test_each_item_of_a_long_list_is_read_at_most_twice():
    CountingList.read = 0

    paths = list(compare_diff.diff_paths({"a": CountingList(range(1000))}, {"a": CountingList([*range(999), "last"])}))

    assert paths == [PathDiff("a[999]", "changed", 999, "last")]
    assert 2000 <= CountingList.read <= 4000


def test_too_long_lists_are_replaced_entirely():
    before = ["kept", *(f"a{number}" for number in range(20_000))]
    after = [*(f"b{number}" for number in range(20_000)), "kept"]

    kinds = {item.item: item.kind for item in compare_diff.diff_items(before, after)}

    assert (kinds["kept"], kinds["a7"], kinds["b7"]) == ("moved", "removed", "added")
