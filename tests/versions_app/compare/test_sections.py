"""The sections of a comparison."""

from tests.versions_app.compare.test_change_summary import BLANK
from versions_app.compare.path_rows import MAX_JSON_LENGTH
from versions_app.compare.sections import MAX_PATHS, build_sections


def section_of(field, before, after, **options):
    (section,) = build_sections({**BLANK, field: before}, {**BLANK, field: after}, **options)
    return section


def rows(section):
    return [row for block in section.blocks for row in block.rows]


def test_removed_lines_are_beside_the_added_ones():
    section = section_of("instructions", "a\nold one\nz", "a\nnew one\nmore\nz")

    lines = [(row.kind, row.old and row.old.number, row.new and row.new.number) for row in rows(section)]
    assert lines == [("equal", 1, 1), ("changed", 2, 2), ("added", None, 3), ("equal", 3, 4)]


def test_unified_lines_follow_each_other():
    section = section_of("instructions", "a\nold one", "a\nnew one", side_by_side=False)

    assert [(row.kind, row.change) for row in rows(section)] == [("equal", None), ("removed", 1), ("added", None)]


def test_consecutive_changed_lines_are_one_step():
    before, after = "1\n2\n3\n4\n5", "1\nx\ny\n4\nz"

    assert [row.change for row in rows(section_of("instructions", before, after)) if row.change] == [1, 2]
    assert [
        row.change for row in rows(section_of("instructions", before, after, side_by_side=False)) if row.change
    ] == [1, 2]


def test_steps_are_numbered_over_all_sections():
    after = {**BLANK, "name": "B", "tools": ["t"], "metadata": {"a": 1}}

    name, tools, metadata = build_sections(BLANK, after)

    assert rows(name)[0].change == 1
    assert tools.items[0].change == 2
    assert metadata.paths[0].change == 3


def test_words_are_marked_on_both_sides():
    (row,) = rows(section_of("instructions", "be very kind", "be most kind"))

    assert [span for span in row.old.spans if span.kind != "equal"] == [("removed", "very")]
    assert [span for span in row.new.spans if span.kind != "equal"] == [("added", "most")]


def test_folds_open_independently():
    lines = [str(number) for number in range(60)]
    after = ["x", *lines[1:30], "y", *lines[31:]]
    closed = section_of("instructions", "\n".join(lines), "\n".join(after))

    keys = [block.key for block in closed.blocks if block.hidden]
    opened = section_of("instructions", "\n".join(lines), "\n".join(after), unfolded=[keys[1]])

    assert [bool(block.hidden) for block in closed.blocks] == [False, True, False, True]
    assert [bool(block.hidden) for block in opened.blocks] == [False, True, False, False]


def test_moved_items_name_both_positions():
    section = section_of("tools", ["a", "b", "c"], ["c", "a", "b"])

    (moved,) = [item for item in section.items if item.kind == "moved"]
    assert (moved.key, moved.old_position, moved.new_position) == ("c", 3, 1)


def test_null_and_missing_values_differ():
    added, removed = section_of("metadata", {}, {"a": None}), section_of("metadata", {"a": None}, {})

    assert (added.paths[0].old, added.paths[0].new) == (None, "null")
    assert (removed.paths[0].old, removed.paths[0].new) == ("null", None)


def test_a_memory_with_the_defaults_says_so():
    (section,) = build_sections(BLANK, {**BLANK, "memory": {"options": {}}})

    assert [(row.path, row.old, row.new) for row in section.paths] == [("options", None, "defaults")]


def test_an_added_object_has_a_row_for_each_member():
    value = {"answer": {"tone": "warm", "words": ["a", "b"]}, "rules": [{"field": "plan"}], "none": {}}

    added, removed = section_of("metadata", {}, {"style": value}), section_of("metadata", {"style": value}, {})

    texts = [
        ("style.answer.tone", '"warm"'),
        ("style.answer.words", '["a", "b"]'),
        ("style.rules[0].field", '"plan"'),
        ("style.none", "{}"),
    ]
    assert [(row.path, row.old, row.new) for row in added.paths] == [(path, None, text) for path, text in texts]
    assert [(row.path, row.old, row.new) for row in removed.paths] == [(path, text, None) for path, text in texts]


def test_an_added_variable_stands_in_words_unless_they_would_hide_something():
    town = {"type": "string", "description": "Where", "default": "Bonn"}
    section = section_of(
        "requestContextSchema", None, {"type": "object", "properties": {"plan": {"enum": ["gold"]}, "town": town}}
    )

    assert [(row.path, row.new) for row in section.paths] == [
        ("plan.enum", '["gold"]'),
        ("town", 'string, optional, default "Bonn": Where'),
    ]


def test_the_size_of_a_comparison_of_json_is_limited():
    paths = section_of("metadata", {}, {str(number): number for number in range(MAX_PATHS + 7)})
    value = section_of("metadata", {}, {"a": "x" * (MAX_JSON_LENGTH * 2)})

    assert (len(paths.paths), paths.omitted) == (MAX_PATHS, 7)
    assert value.paths[0].new.endswith("more characters)")
