"""The division of texts into chunks, at the ends of paragraphs and sentences where possible."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from knowledge_app.documents import media_types


class Passage(NamedTuple):
    """A chunk of a text: `text` is what stands there from `start` to `end`."""

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
    # A heading stands in the place of each passage below it. Alone it answers nothing, but it is like many questions.
    chunks = [part for part in splitter.chunk_indices(text) if not (has_marks and has_only_headings(part[1]))]
    for number, (start, chunk) in enumerate(chunks):
        section = bisect_right(starts, start) - 1
        place = sections[section][1] if section >= 0 else ""
        yield Passage(number, chunk, start, start + len(chunk), place)


def has_only_headings(chunk: str) -> bool:
    """Return True for a chunk that consists of headings."""
    return all(line.startswith("#") for line in chunk.splitlines() if line.strip())
