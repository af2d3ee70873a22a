"""The messages of a thread as a model is given them: in the order in which runs saw them, with their authors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from agentcms.wire.json_types import JSONValue
from memory_app.history.signal_payloads import signal_payload
from memory_app.history.turn_markup import ThreadTurns
from memory_app.models import Message

UNPROCESSED, PAYLOAD = "unprocessed", "signal"  # in the metadata of a message
WINDOW_COLUMNS = (
    *("number", "head_number", "role", "data", "tokens", "run_id", "seen_by"),
    *("author_id", "author_name", "attributes"),
)


def place_signals(rows: Sequence[Message]) -> Iterator[Message]:
    """Yield messages in order, with each signal before the first message of the run that saw it.

    A signal is stored when it comes, and the messages of a run when the run ends.
    """
    ends = {row.run_id for row in rows if row.run_id is not None}
    moved: dict[UUID, list[Message]] = defaultdict(list)
    for row in rows:
        if row.role == Message.Role.SIGNAL and row.seen_by in ends and row.seen_by is not None:
            moved[row.seen_by].append(row)
    for row in rows:
        if row.run_id is not None:
            yield from moved.pop(row.run_id, ())
        if not (row.role == Message.Role.SIGNAL and row.seen_by in ends):
            yield row


def window_data(rows: Sequence[Message], turns: ThreadTurns) -> list[JSONValue]:
    """Return the data of messages, which are sorted by number, with the markup of turns.

    Signals whose run did not end well are marked: it may not have reached its input processors.
    """
    ends = {row.run_id for row in rows}
    window = []
    for row in place_signals(rows):
        mark = {}
        if row.role == Message.Role.SIGNAL and row.seen_by not in ends:
            mark = {"metadata": {UNPROCESSED: True, PAYLOAD: signal_payload(row, turns.turn_of(row))}}
        window.append({**with_turn(row, turns), **mark})
    return window


def with_turn(row: Message, turns: ThreadTurns) -> JSONValue:
    """Return the data of a message, wrapped in its turn if it has one."""
    turn = turns.turn_of(row)
    if turn is None:
        return row.data
    parts = [
        {**part, "content": turn.wrap(part["content"])}
        if part.get("part_kind") == "user-prompt" and isinstance(part.get("content"), str)
        else part
        for part in row.data.get("parts") or ()
    ]
    return {**row.data, "parts": parts}


def fit_tokens(newest: Iterable[Message], max_tokens: int | None) -> list[Message]:
    """Return the newest messages whose tokens together do not exceed the limit, oldest first."""
    fitting: list[Message] = []
    total = 0
    for row in newest:
        total += row.tokens
        # Smaller messages before it are left out too: the model must not read a conversation with a gap.
        if max_tokens is not None and total > max_tokens:
            break
        fitting.append(row)
    return fitting[::-1]
