"""The tokenizer of the agent search. It runs in Python, so results are the same on every database."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from agentcms.wire.normal_forms import normalize_text

MAX_INDEX_BYTES = 400_000  # of an agent's words; a tsvector of PostgreSQL holds a megabyte
# Characters. A tsvector of PostgreSQL takes words of less than 2,048 bytes, and a character has at most four.
MAX_WORD_LENGTH = 200
MAX_SEARCH_LENGTH = 1_000  # characters of a query
FIELD_SEPARATOR = "|"  # not a word, so no phrase matches across two fields

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_SEARCH_PART = re.compile(r'"([^"]*)("?)|([^\s"]+)')


class Term(NamedTuple):
    """A word, or a phrase of adjacent words. With `prefix`, the last word matches by its beginning."""

    words: list[str]
    prefix: bool


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return the pattern of a word in any script.

    A word is a run of letters, digits and combining marks. In scripts without spaces, each character is a word.
    """
    marks = _character_ranges(lambda character: unicodedata.category(character).startswith("M"))
    return re.compile(rf"[{_SPACELESS}][{marks}]*|(?:[^\W_{_SPACELESS}]|[{marks}])+")


# Han, Hiragana, Katakana, Thai, Lao, Khmer, Burmese: written without spaces.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SPACELESS += "\U00020000-\U0003ffff"


def _character_ranges(predicate: Callable[[str], bool]) -> str:
    """Return the matching characters as the inside of a regular expression's character class."""
    # U+0300 is the first combining mark.
    codes = [code for code in range(0x300, sys.maxunicode + 1) if predicate(chr(code))]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


def tokenize(text: str) -> list[str]:
    """Return the words of a text in order, case-folded and in Unicode normal form NFKC."""
    if text.isascii():
        words = _ASCII_WORD.findall(text.lower())
    else:
        # Again after folding, which may leave the normal form: the one character ǰ becomes two.
        folded = normalize_text("NFKC", normalize_text("NFKC", text).casefold())
        words = _word_pattern().findall(folded)
    return [word[:MAX_WORD_LENGTH] for word in words]


def is_sign(word: str) -> bool:
    """Return whether a word has only signs, such as the middle dot of Japanese names, which FTS5 does not index."""
    return all(unicodedata.category(character)[0] in "PS" for character in word)


def find_words(text: str) -> list[str]:
    """Return the words of a text as they are written, for a search in texts that no index has."""
    return _word_pattern().findall(normalize_text("NFC", text))


def index_text(*texts: str) -> str:
    """Return the words of the texts as the index stores them: separated by spaces, with a mark between two texts."""
    words = f" {FIELD_SEPARATOR} ".join(" ".join(tokenize(text)) for text in texts)
    # A character has at most four bytes, so most texts need not be encoded to be measured.
    if len(words) * 4 > MAX_INDEX_BYTES:
        words = words.encode()[:MAX_INDEX_BYTES].decode(errors="ignore")
        words = words.rpartition(" ")[0] if " " in words else ""
    return " ".join(words.split())


def parse_search(query: str) -> list[Term]:
    """Parse a search query into words and quoted phrases. Parts without a word are dropped; no query is an error."""
    parts = list(_SEARCH_PART.finditer(query[:MAX_SEARCH_LENGTH]))
    terms = [Term(tokenize(part[1] or part[3] or ""), prefix=part is parts[-1] and not part[2]) for part in parts]
    return [term for term in terms if term.words]
