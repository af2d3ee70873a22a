"""Unicode normal forms of texts by others, in linear time."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from typing import Literal

# The Stream-Safe Text Format of Unicode Standard Annex 15 has no more in a row, and no language needs as many.
MAX_MARKS = 30
SHORT_TEXT = 1_000  # characters, of which all may be marks: to sort them takes milliseconds


def normalize_text(form: Literal["NFC", "NFD", "NFKC"], text: str) -> str:
    """Return a text in a normal form. A long text loses the combining marks of a letter beyond `MAX_MARKS`."""
    # Python sorts the marks of a letter in quadratic time: 100,000 of them would keep a process busy for 15 seconds.
    if len(text) > SHORT_TEXT and not text.isascii():
        text = _too_many_marks().sub(r"\1", text)
    return unicodedata.normalize(form, text)


@cache
def _too_many_marks() -> re.Pattern[str]:
    codes = range(0x300, sys.maxunicode + 1)  # U+0300 is the first combining mark
    marks = "".join(rf"\U{code:08x}" for code in codes if _is_mark(chr(code)))
    return re.compile(rf"([{marks}]{{{MAX_MARKS}}})[{marks}]+")


def _is_mark(char: str) -> bool:
    """Return whether a character becomes nothing but combining marks. Some, such as U+FF9E, do so in NFKC only."""
    return all(map(unicodedata.combining, unicodedata.normalize("NFKD", char)))
