"""The parts of a text that are embedded."""

from memory_app.recall.parts import CHARACTERS_PER_PART, cut_parts


def test_a_part_has_two_hundred_words_and_a_text_at_most_four_parts():
    words = [f"word{number}" for number in range(1000)]

    parts = cut_parts(" ".join(words))

    assert [len(part.split()) for part in parts] == [200, 200, 200, 200]
    assert " ".join(parts).split() == words[:800]


def test_a_short_text_is_one_part():
    assert cut_parts("My favourite colour\nis teal.") == ["My favourite colour is teal."]


def test_a_text_without_spaces_is_cut_by_characters():
    parts = cut_parts("字" * 9000)

    assert [len(part) for part in parts] == [CHARACTERS_PER_PART] * 4


def test_long_words_do_not_make_long_parts():
    parts = cut_parts("a" * 1500 + " " + "b" * 1500)

    assert [len(part) for part in parts] == [1500, 1500]


def test_a_part_ends_before_the_word_that_would_make_it_too_long():
    parts = cut_parts(" ".join(["a" * 99] * 45))

    assert [len(part) for part in parts] == [20 * 100 - 1, 20 * 100 - 1, 5 * 100 - 1]


def test_every_text_has_a_part():
    assert cut_parts(" \n\u00a0") == [""]
