"""Long texts of a comparison, which are shown in parts."""

import pytest

from tests.versions_app.compare.test_sections import rows, section_of
from versions_app.compare import diff
from versions_app.compare.text_rows import CHARACTERS_PER_PART, ROWS_PER_PART

LENGTH = 2 * ROWS_PER_PART + 50
OLD, NEW = ("\n".join(f"Rule {number} {word}" for number in range(LENGTH)) for word in ("old", "new"))


def compare(unfolded=(), before=OLD, after=NEW, **options):
    return section_of("instructions", before, after, unfolded=unfolded, **options)


def labels(section):
    return [(block.key, block.hidden.label) for block in section.blocks if block.hidden]


def shown_numbers(section):
    return [row.old.number for row in rows(section)]


def test_the_first_part_is_shown_with_a_link_to_the_next():
    section = compare()

    assert shown_numbers(section) == [*range(1, ROWS_PER_PART + 1)]
    assert labels(section) == [("instructions-part-2", f"Show {ROWS_PER_PART} more of {ROWS_PER_PART + 50} lines")]


def test_an_opened_part_has_links_to_both_sides_and_a_place_to_go_to():
    section = compare(["instructions-part-2"])

    assert shown_numbers(section) == [*range(ROWS_PER_PART + 1, 2 * ROWS_PER_PART + 1)]
    assert labels(section) == [
        ("instructions-part-1", f"Show the {ROWS_PER_PART} lines before"),
        ("instructions-part-3", "Show 50 more lines"),
    ]
    assert [block.key for block in section.blocks] == [
        "instructions-part-1",
        "instructions-part-2",
        "",
        "instructions-part-3",
    ]


def test_the_last_part_has_no_link_to_a_next_one():
    section = compare(["instructions-part-3"])

    assert len(rows(section)) == 50
    assert [key for key, _ in labels(section)] == ["instructions-part-2"]


@pytest.mark.parametrize("side_by_side", [True, False])
def test_all_parts_together_are_the_whole_comparison(side_by_side):
    size = LENGTH if side_by_side else 2 * LENGTH
    parts = [
        compare([f"instructions-part-{number}"], side_by_side=side_by_side)
        for number in range(1, -(-size // ROWS_PER_PART) + 1)
    ]

    together = [row for part in parts for row in rows(part)]
    old = [text_of(row.old) for row in together if row.old]
    new = [text_of(row.new) for row in together if row.new]
    assert ("\n".join(old), "\n".join(new)) == (OLD, NEW)


def test_a_part_of_a_unified_text_has_old_and_new_lines():
    kinds = [row.kind for row in rows(compare(side_by_side=False))]

    assert kinds == ["removed"] * (ROWS_PER_PART // 2) + ["added"] * (ROWS_PER_PART // 2)


def text_of(side):
    return "".join(span.text for span in side.spans)


def test_each_part_begins_with_a_step():
    assert [row.change for row in rows(compare(["instructions-part-2"])) if row.change] == [1]


def test_an_unknown_part_shows_the_first_one():
    assert shown_numbers(compare(["instructions-part-9", "part-2", "<b>"])) == shown_numbers(compare())


def test_lines_that_are_folded_in_a_later_part_open_there():
    same = "\n".join(f"Same {number}" for number in range(1000))
    texts = {"before": f"{OLD}\n{same}\nlast", "after": f"{NEW}\n{same}\nend"}
    later = compare(["instructions-part-3"], **texts)
    fold = next(block for block in later.blocks if block.hidden and block.hidden.kind == "unchanged")

    opened = compare([fold.key], **texts)

    assert fold.hidden.label == "Show 994 unchanged lines"
    assert len(rows(opened)) == len(rows(later)) + 994  # whole, although it is longer than a part


def test_long_lines_make_short_parts():
    line = "x" * (CHARACTERS_PER_PART // 4)
    before, after = ("\n".join(f"{line}{word}{number}" for number in range(10)) for word in "ab")

    assert shown_numbers(compare(before=before, after=after)) == [1, 2]


def test_a_line_that_is_longer_than_a_part_is_a_part():
    line = "x" * (2 * CHARACTERS_PER_PART)

    assert shown_numbers(compare(before=f"{line}\na", after=f"{line}y\nb")) == [1]


def test_words_are_compared_once_and_only_in_the_shown_part(monkeypatch):
    compared = []
    diff_words = diff._diff_words
    monkeypatch.setattr(diff, "_diff_words", lambda *lines: compared.append(lines) or diff_words(*lines))

    section = compare(["instructions-part-3"])

    assert len(compared) == 50
    assert all(span.kind == "equal" or span.text in ("old", "new") for row in rows(section) for span in row.old.spans)
