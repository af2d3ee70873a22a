"""The words in which two answers differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from versions_app.compare.diff import replaced_blocks

WORD = re.compile(r"\w+")
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
MAX_MARKED_LENGTH = 4000  # characters of an answer in a comparison
EXCERPT_LENGTH = 280  # characters of a long answer that are shown before it is opened
CONTEXT_LENGTH = 60  # characters of an excerpt beside a marked word
MIN_SHARED = 0.3  # of the letters of two answers


class WordSpan(NamedTuple):
    """A part of a text, which is marked if the other text has other words there."""

    text: str
    marked: bool


def mark_words(before: str, after: str) -> tuple[list[WordSpan], list[WordSpan]]:
    """Return two texts in parts, with the words marked that differ. Long texts are cut."""
    old, new = TOKEN.findall(before[:MAX_MARKED_LENGTH]), TOKEN.findall(after[:MAX_MARKED_LENGTH])
    blocks = replaced_blocks(old, new)
    removed = {index for start, end, *_ in blocks for index in range(start, end)}
    added = {index for *_, start, end in blocks for index in range(start, end)}
    return _spans(old, removed), _spans(new, added)


def mark_answers(before: str, after: str) -> tuple[list[WordSpan], list[WordSpan]]:
    """Return two answers as `mark_words` does, without marks if they have few words in common.

    Marks on nearly every word would say nothing, and a text that is struck out is hard to read.
    """
    old, new = mark_words(before, after)
    same, most = _letters(span for span in old if not span.marked), max(_letters(old), _letters(new))
    if same >= MIN_SHARED * most:
        return old, new
    return _unmarked(old), _unmarked(new)


def excerpt_around_marks(spans: Sequence[WordSpan]) -> list[WordSpan]:
    """Return the beginnings of the parts of a long text around its marks, or nothing if the text is short.

    Without marks it is the beginning of the text. The reader opens the rest.
    """
    if sum(len(span.text) for span in spans) <= EXCERPT_LENGTH:
        return []
    short: list[WordSpan] = []
    left = EXCERPT_LENGTH
    for index, span in enumerate(spans):
        is_marked_next = index + 1 < len(spans) and spans[index + 1].marked
        text = span.text if span.marked else _ends(span.text, starts=index > 0, ends=is_marked_next)
        short.append(WordSpan(text if len(text) <= left else f"{text[:left]}…", span.marked))
        left -= len(text)
        if left <= 0:
            break
    return short if left <= 0 else [*short, WordSpan(" …", False)]


def _ends(text: str, *, starts: bool, ends: bool) -> str:
    """Return the characters of an unmarked text that are beside marks: after one, before the next, or both."""
    if not starts and not ends:
        return text
    if len(text) <= 2 * CONTEXT_LENGTH:
        return text
    return f"{text[:CONTEXT_LENGTH] if starts else ''} … {text[-CONTEXT_LENGTH:] if ends else ''}"


def _letters(spans: Iterable[WordSpan]) -> int:
    return sum(len(word) for span in spans for word in WORD.findall(span.text))


def _unmarked(spans: Sequence[WordSpan]) -> list[WordSpan]:
    return [WordSpan("".join(span.text for span in spans), False)] if spans else []


def _spans(tokens: Sequence[str], marked: set[int]) -> list[WordSpan]:
    spans: list[WordSpan] = []
    for index, token in enumerate(tokens):
        is_marked = index in marked
        if spans and spans[-1].marked == is_marked:
            spans[-1] = WordSpan(spans[-1].text + token, is_marked)
        else:
            spans.append(WordSpan(token, is_marked))
    return spans
