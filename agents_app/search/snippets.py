"""Excerpts of the searched texts with the matches marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from agents_app.search.tokenizer import MAX_SEARCH_LENGTH

SNIPPET_CONTEXT = 60  # characters on each side of a match


class SnippetPart(NamedTuple):
    """A part of a text, marked if it matches the search."""

    text: str
    marked: bool


def word_pattern(text: str) -> re.Pattern[str] | None:
    """Return the pattern of the beginnings of words that a search names, or None if it names none."""
    words = sorted(map(re.escape, {*re.findall(r"\w+", text[:MAX_SEARCH_LENGTH])}), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(words)})", re.IGNORECASE) if words else None


def highlight(text: str, pattern: re.Pattern[str] | None) -> list[SnippetPart]:
    """Return the whole text as parts, with all matches marked."""
    parts, position = [], 0
    for match in pattern.finditer(text) if pattern else ():
        parts += [SnippetPart(text[position : match.start()], False), SnippetPart(match.group(), True)]
        position = match.end()
    return [part for part in [*parts, SnippetPart(text[position:], False)] if part.text]


def build_snippet(text: str, pattern: re.Pattern[str] | None) -> Sequence[SnippetPart]:
    """Return an excerpt of a long text around its first match, with all matches marked. Empty without a match."""
    match = pattern.search(text) if pattern else None
    return highlight(search_excerpt(text, match.start(), match.end()), pattern) if match else []


def search_excerpt(text: str, start: int, end: int) -> str:
    """Return a part of a text with some whole words before and after it, on one line."""
    before, after = text[:start][-SNIPPET_CONTEXT:], text[end:][:SNIPPET_CONTEXT]
    if start > SNIPPET_CONTEXT:
        before = f"… {before.partition(' ')[2]}"
    if len(text) - end > SNIPPET_CONTEXT:
        after = f"{after.rpartition(' ')[0]} …"
    return " ".join(f"{before}{text[start:end]}{after}".split())
