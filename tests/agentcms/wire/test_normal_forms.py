"""Normal forms of texts with very many combining marks."""

import time
import unicodedata

import pytest

from agentcms.vectors.wordpiece import split_words_and_marks
from agentcms.wire.normal_forms import MAX_MARKS, normalize_text
from agents_app.search.tokenizer import find_words, index_text

ACUTE, CEDILLA = "\N{COMBINING ACUTE ACCENT}", "\N{COMBINING CEDILLA}"
HALFWIDTH_MARK = "\N{HALFWIDTH KATAKANA VOICED SOUND MARK}"  # a letter, and a mark in NFKC
MOST_SECONDS = 1.0  # quadratic time takes at least ten


@pytest.mark.parametrize("marks", [ACUTE + CEDILLA, ACUTE + HALFWIDTH_MARK])
@pytest.mark.parametrize(
    "read", [index_text, find_words, lambda text: [*split_words_and_marks(text)]], ids=["index", "words", "wordpiece"]
)
def test_a_letter_with_100_000_marks_takes_no_time(read, marks):
    start = time.thread_time()

    read("e" + marks * 50_000)

    assert time.thread_time() - start < MOST_SECONDS


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC"])
def test_the_marks_of_all_languages_are_kept(form):
    text = f"e{CEDILLA}{ACUTE}" * 1000 + "ｶﾞ ﬁ ệ" + f"o{ACUTE * MAX_MARKS}"

    assert normalize_text(form, text) == unicodedata.normalize(form, text)


def test_marks_beyond_30_of_a_letter_are_left_out():
    assert normalize_text("NFD", f"a{ACUTE * 2000}b") == f"a{ACUTE * MAX_MARKS}b"
