"""The division of texts into chunks, at the ends of paragraphs and sentences where possible."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from knowledge_app.documents import media_types

# The library takes quadratic time for long blank space and for long words. It gets short parts without such space.
LONG_GAP = re.compile(r"(?<!\s)\s{200,}")
MAX_PART_LENGTH = 100_000
# A heading, the mark of a block of code, or a line without a letter or digit, such as a rule.
is_mark = re.compile(r"#.*|\s{0,3}(```|~~~).*|\W*").fullmatch
PART_ENDS = ("\n\n", "\n", " ")


class Passage(NamedTuple):
    """A chunk of a text: `text` is the part of the text from `start` to `end`."""

    number: int
    text: str
    start: int
    end: int
    place: str

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def split_text(
    text: str, media_type: str, sections: Sequence[tuple[int, str]], *, size: int, overlap: int
) -> Iterator[Passage]:
    """Yield the chunks of a text in order.

    Args:
        sections: The positions of places with their names, in order.
        size: The most characters of a chunk.
        overlap: The most characters that a chunk shares with the one before it.
    """
    from semantic_text_splitter import MarkdownSplitter, TextSplitter  # heavy

    has_marks = media_type in (media_types.MARKDOWN, media_types.HTML)
    splitter = (MarkdownSplitter if has_marks else TextSplitter)(size, overlap=overlap)
    starts = [position for position, _ in sections]
    placed_chunks = [
        (position + start, chunk)
        for position, part in split_into_parts(text)
        for start, chunk in splitter.chunk_indices(part)
    ]
    # A heading is the place of each passage below it. Alone it answers nothing, but it is like many questions. The
    # library also divides a long block of code from its first and its last line.
    with_text = [part for part in placed_chunks if not (has_marks and has_only_marks(part[1]))]
    for number, (start, chunk) in enumerate(with_text or placed_chunks):
        section = bisect_right(starts, start) - 1
        place = sections[section][1] if section >= 0 else ""
        yield Passage(number, chunk, start, start + len(chunk), place)


def split_into_parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a text that the library gets, each with its position."""
    start = 0
    for end, next_start in [*(gap.span() for gap in LONG_GAP.finditer(text)), (len(text), len(text))]:
        while end - start > MAX_PART_LENGTH:
            cut = part_end(text, start)
            yield start, text[start:cut]
            start = cut
        if end > start:
            yield start, text[start:end]
        start = next_start


def part_end(text: str, start: int) -> int:
    """Return where the part of a long text ends: at a paragraph, a line or a word if possible."""
    limit = start + MAX_PART_LENGTH
    ends = (text.rfind(mark, start + MAX_PART_LENGTH // 2, limit) + len(mark) for mark in PART_ENDS)
    return next((end for end in ends if end > start + MAX_PART_LENGTH // 2), limit)


def has_only_marks(chunk: str) -> bool:
    """Return True for a chunk that consists of headings and marks."""
    return all(is_mark(line) for line in chunk.splitlines())
