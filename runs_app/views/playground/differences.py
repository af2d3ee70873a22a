"""Marks on the words in which the answers of the columns differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from runs_app.display.answer import RunView
from runs_app.display.transcript import AnswerSpan, TextPart
from runs_app.views.playground.columns import PlaygroundColumn
from versions_app.compare.diff import replaced_blocks

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
WORD = re.compile(r"\w")


def mark_differences(columns: Sequence[PlaygroundColumn]) -> bool:
    """Mark the words in which the last answers differ from that of the first column. Return False while one runs.

    In the first column, the words that any other answer does not have are marked.
    """
    answered = [column for column in columns if column.answers]
    if any(not column.answers[-1].run.is_finished for column in answered):
        return False
    if len(answered) < 2:
        return True
    first, *others = answered
    tokens = tokens_of(first.answers[-1])
    missing_elsewhere: set[int] = set()
    for column in others:
        blocks = replaced_blocks(tokens, other_tokens := tokens_of(column.answers[-1]))
        missing = {index for start, end, *_ in blocks for index in range(start, end)}
        marked = {index for *_, start, end in blocks for index in range(start, end)}
        missing_elsewhere |= missing
        set_spans(column.answers[-1], marked)
        counts = count_words(other_tokens, marked), count_words(tokens, missing)
        column.difference = difference_text(*counts, first.label)
    set_spans(first.answers[-1], missing_elsewhere)
    return True


def difference_text(marked: int, missing: int, label: str) -> str:
    """Return the number of marked words in words, so that the marks are not the only sign.

    An answer that has no word of its own may lack some of the first answer, where they are marked.
    """
    if marked:
        return f"{marked:,} word{' differs' if marked == 1 else 's differ'} from {label}"
    if missing:
        return f"{missing:,} word{' of' if missing == 1 else 's of'} {label} {'is' if missing == 1 else 'are'} missing"
    return f"Same words as {label}"


def count_words(tokens: Sequence[str], positions: Iterable[int]) -> int:
    return sum(WORD.match(tokens[position]) is not None for position in positions)


def text_parts(answer: RunView) -> list[TextPart]:
    return [part for part in answer.parts if isinstance(part, TextPart) and part.kind == "text"]


def tokens_of(answer: RunView) -> list[str]:
    """Return the words, spaces and signs in the texts of an answer."""
    return [token for part in text_parts(answer) for token in TOKEN.findall(part.text)]


def set_spans(answer: RunView, marked: set[int]) -> None:
    """Split the texts of an answer into spans that are marked or not. `marked` are positions of tokens."""
    position = 0
    for part in text_parts(answer):
        part.spans = []
        for token in TOKEN.findall(part.text):
            # Only a space between two marked words is marked, so that they are one span.
            is_marked = {position - 1, position + 1} <= marked if token.isspace() else position in marked
            position += 1
            if part.spans and part.spans[-1].marked == is_marked:
                part.spans[-1] = AnswerSpan(part.spans[-1].text + token, is_marked)
            else:
                part.spans.append(AnswerSpan(token, is_marked))
