"""Words as the search knows them: the same on every database, because we cut them ourselves."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

MAX_INDEX_BYTES = 400_000  # of an agent's words; a tsvector of PostgreSQL holds a megabyte
MAX_WORD_LENGTH = 200
MAX_SEARCH_LENGTH = 1_000  # characters of a search
FIELD_SEPARATOR = "|"  # stands between two fields, so that no phrase runs across

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_SEARCH_PART = re.compile(r'"([^"]*)("?)|([^\s"]+)')


class Term(NamedTuple):
    """A word, or words that must stand side by side; the last of a prefix need only begin so."""

    words: list[str]
    prefix: bool


@cache
def _word_pattern() -> re.Pattern[str]:
    """A word in any script: letters, digits and their marks; where a script puts no space, each sign is a word."""
    marks = _character_ranges(lambda character: unicodedata.category(character).startswith("M"))
    return re.compile(rf"[{_SPACELESS}][{marks}]*|(?:[^\W_{_SPACELESS}]|[{marks}])+")


# Han, Hiragana, Katakana, Thai, Lao, Khmer, Burmese: written without spaces.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SPACELESS += "\U00020000-\U0003ffff"


def _character_ranges(wanted: Callable[[str], bool]) -> str:
    """The characters for which a test holds, as the inside of a character class."""
    codes = [code for code in range(0x300, sys.maxunicode + 1) if wanted(chr(code))]
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in runs)


def tokenize(text: str) -> list[str]:
    """The words of a text in order, without case and in one spelling of each character."""
    if text.isascii():
        found = _ASCII_WORD.findall(text.lower())
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        found = _word_pattern().findall(folded)
    return [word[:MAX_WORD_LENGTH] for word in found]


def index_text(*texts: str) -> str:
    """The words of some texts as the index keeps them: separated by spaces, a boundary between two texts."""
    kept = f" {FIELD_SEPARATOR} ".join(" ".join(tokenize(text)) for text in texts)
    if len(kept) * 4 > MAX_INDEX_BYTES:
        kept = kept.encode()[:MAX_INDEX_BYTES].decode(errors="ignore")
        kept = kept.rpartition(" ")[0] if " " in kept else ""
    return " ".join(kept.split())


def parse_search(typed: str) -> list[Term]:
    """What was typed into a search: words and quoted phrases. Nothing is an error; what holds no word is left out."""
    parts = list(_SEARCH_PART.finditer(typed[:MAX_SEARCH_LENGTH]))
    found = [Term(tokenize(part[1] or part[3] or ""), prefix=part is parts[-1] and not part[2]) for part in parts]
    return [term for term in found if term.words]
