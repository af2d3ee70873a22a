"""The parts of a text that are embedded."""

from __future__ import annotations

WORDS_PER_PART = 200
CHARACTERS_PER_PART = 2000  # a text in Chinese or Japanese has no spaces
MAX_PARTS = 4


def cut_parts(text: str) -> list[str]:
    """Return the first parts of a text, each of whole words as far as possible. There is at least one."""
    # Not the whole of a long text. Twice the length of all parts, because they have a single blank between two words.
    words = text[: MAX_PARTS * CHARACTERS_PER_PART * 2].split()
    parts: list[str] = []
    while words and len(parts) < MAX_PARTS:
        part, words = _first_part(words)
        parts.append(part)
    return parts or [""]


def _first_part(words: list[str]) -> tuple[str, list[str]]:
    """Return the first part of these words, and the words after it."""
    count = length = 0
    for word in words[:WORDS_PER_PART]:
        length += len(word) + 1
        if length > CHARACTERS_PER_PART + 1:
            break
        count += 1
    if count == 0:  # a single word is longer than a part
        return words[0][:CHARACTERS_PER_PART], [words[0][CHARACTERS_PER_PART:], *words[1:]]
    return " ".join(words[:count]), words[count:]
