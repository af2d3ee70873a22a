"""WordPiece tokens of English texts, as the model BERT (uncased) was trained with them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from agentcms.wire.normal_forms import normalize_text

# The vocabulary of bert-base-uncased by Google, Apache License 2.0. Packages of the model have it only with weights
# of 90 MB.
VOCABULARY_FILE = Path(__file__).with_name("bert_uncased_vocabulary.txt")
CLASSIFIER, SEPARATOR, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
CONTINUATION = "##"
MAX_WORD_LENGTH = 100  # characters; longer words are unknown
CONTROL = ("Cc", "Cf", "Cs", "Co")  # categories of Unicode
IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)),
    *((0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


@cache
def load_vocabulary() -> Mapping[str, int]:
    """Return the number of each token."""
    return {token: number for number, token in enumerate(VOCABULARY_FILE.read_text("utf-8").split("\n")[:-1])}


def token_ids(text: str, max_length: int) -> list[int]:
    """Return the numbers of the tokens of a text, at most `max_length` with those at both ends."""
    vocabulary = load_vocabulary()
    ids = [vocabulary[token] for word in split_words_and_marks(text) for token in split_word(word, vocabulary)]
    return [vocabulary[CLASSIFIER], *ids[: max_length - 2], vocabulary[SEPARATOR]]


def split_words_and_marks(text: str) -> Iterator[str]:
    """Yield the words and punctuation marks of a text in lower case, without accents."""
    spaced = "".join(map(_with_spaces, text))
    plain = "".join(char for char in normalize_text("NFD", spaced) if unicodedata.category(char) != "Mn")
    for word in plain.lower().split():
        start = 0
        for position, char in enumerate(word):
            if _is_punctuation(char):
                yield from filter(None, (word[start:position], char))
                start = position + 1
        if start < len(word):
            yield word[start:]


def split_word(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    """Return the longest tokens of which a word consists, from the left, or the unknown token."""
    if len(word) > MAX_WORD_LENGTH:
        return [UNKNOWN]
    tokens: list[str] = []
    start = 0
    while start < len(word):
        prefix = CONTINUATION if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None:
            return [UNKNOWN]
        tokens.append(prefix + word[start:end])
        start = end
    return tokens


def _with_spaces(char: str) -> str:
    """Return a character as its part of a text: a space for white space, nothing for a control character."""
    code = ord(char)
    if char in "\t\n\r":
        return " "
    if code in (0, 0xFFFD) or unicodedata.category(char) in CONTROL:
        return ""
    if any(first <= code <= last for first, last in IDEOGRAPHS):
        return f" {char} "
    return " " if char.isspace() else char


def _is_punctuation(char: str) -> bool:
    is_mark = char.isascii() and char.isprintable() and not char.isalnum() and char != " "
    return is_mark or unicodedata.category(char).startswith("P")
