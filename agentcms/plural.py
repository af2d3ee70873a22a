"""Numbers with their nouns, as in "1 item" and "1,200 items", and lists in words, as in "a, b and c"."""

from collections.abc import Sequence


def pluralize(count: int, noun: str) -> str:
    """Return a number with its noun, which takes an s if the number is not 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def join_words(words: Sequence[str]) -> str:
    """Return words as a part of a sentence, with "and" before the last of several. There is at least one."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
