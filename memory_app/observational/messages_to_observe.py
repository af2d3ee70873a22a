"""The next messages of a thread to observe, and how they are quoted for a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Max

from agentcms.wire.canonical import text_or_json
from agentcms.wire.json_types import JSONMapping
from memory_app.history.message_data import RESULT_KINDS
from memory_app.history.signal_markup import escape_attribute
from memory_app.history.token_estimate import BYTES_PER_TOKEN
from memory_app.models import Message
from memory_app.observational.limits import ObservationLimits
from memory_app.observational.observation_log import ObservationLog, load_log, tokens_after

SPOKEN_ROLES = (Message.Role.USER, Message.Role.SIGNAL)
QUOTED_COLUMNS = ("pk", "number", "role", "data", "text", "tokens", "seen_by", "author_name", "created_at")
UNPROCESSED_TEXT = "(The agent failed before it could read this message.)"
MIN_CHARACTERS = 1000  # of each message that are quoted at least
ROLE_NAMES: dict[str, str] = {Message.Role.USER: "User", Message.Role.SIGNAL: "Signal", Message.Role.TOOL: "Tool"}
QUOTE_TAG = "message"
CLOSING_TAG = re.compile(r"</(?=message)", re.IGNORECASE)  # of QUOTE_TAG


@dataclass(frozen=True)
class MessageGroup:
    """Messages that one observation is about. `text` quotes them."""

    first: int
    last: int
    tokens: int
    rows: Sequence[Message]
    text: str

    @property
    def lines(self) -> list[str]:
        """Each message in one line: its time, its author and its words."""
        return [
            f"{row.created_at:%Y-%m-%d %H:%M} {speaker_of(row)}: {' '.join(row.text.split())}" for row in self.rows
        ]


def find_chunk(
    thread_id: int, limits: ObservationLimits, at_least: int, open_runs: Collection[UUID] = ()
) -> MessageGroup | None:
    """Return the next messages without an observation, or None if they have fewer than `at_least` tokens."""
    return next_chunk(thread_id, load_log(thread_id), limits, at_least, open_runs)


def next_chunk(
    thread_id: int, log: ObservationLog, limits: ObservationLimits, at_least: int, open_runs: Collection[UUID] = ()
) -> MessageGroup | None:
    """Return the messages after those of a log. They end before the words of a person, as far as possible.

    They also end before signals that the input processors of a run may still change.
    """
    if tokens_after(thread_id, log.observed_until) < at_least:
        return None
    builder = ChunkBuilder(limits.chunk_tokens)
    processing = SignalProcessing.of_thread(thread_id, log.observed_until, open_runs)
    unobserved = Message.objects.filter(thread=thread_id, number__gt=log.observed_until).order_by("number")
    for row in unobserved.only(*QUOTED_COLUMNS).iterator():
        if row.role == Message.Role.SIGNAL and processing.is_open(row):
            break  # a run is going to be given this signal
        builder.add(processing.readable(row))
        if builder.is_complete:
            break
    # The end of the thread ends the chunk too, but not while the last call waits for its result.
    if not builder.is_complete and not builder.open_calls:
        builder.end()
    rows = builder.rows[: builder.count]
    if not rows:
        return None
    text = "\n\n".join(quote(row, limits) for row in rows)
    return MessageGroup(log.observed_until + 1, rows[-1].number, sum(row.tokens for row in rows), rows, text)


@dataclass(frozen=True)
class SignalProcessing:
    """State of the signals of a thread: input processors have seen those of runs that have stored their messages.

    A run that failed may have failed before. The next run that ends well takes over the signals that it was given.
    """

    ended: Mapping[UUID, int]  # the runs that have stored messages, with the number of the last one
    open_runs: Collection[UUID]

    @classmethod
    def of_thread(cls, thread_id: int, after: int, open_runs: Collection[UUID]) -> SignalProcessing:
        """Return what has become of the signals of a thread after a number. Those of a run precede its messages."""
        rows = Message.objects.filter(thread=thread_id, number__gt=after, run_id__isnull=False).order_by()
        return cls(dict(rows.values_list("run_id").annotate(Max("number"))), open_runs)

    def is_open(self, signal: Message) -> bool:
        """Return whether a run may still process a signal."""
        if signal.seen_by in self.ended:
            return False
        is_newest = signal.number > max(self.ended.values(), default=0)
        return is_newest or signal.seen_by is None or signal.seen_by in self.open_runs

    def readable(self, row: Message) -> Message:
        """Return a message without the text of a signal that no input processors have seen."""
        if row.role == Message.Role.SIGNAL and row.seen_by not in self.ended:
            row.text, row.data = UNPROCESSED_TEXT, {}
        return row


@dataclass
class ChunkBuilder:
    """A builder of a chunk of at most `max_tokens`, which never ends between a call and its result.

    It ends before the words of a person. Only a longer answer is cut between two requests to the model.
    """

    max_tokens: int
    rows: list[Message] = field(default_factory=list)
    count: int = 0  # of the rows before the end that was found last
    is_complete: bool = False
    tokens: int = 0
    open_calls: set[str] = field(default_factory=set)

    def add(self, row: Message) -> None:
        """Read the next message. The chunk is complete if it may end before it, and is large enough."""
        is_large = self.tokens > self.max_tokens
        if row.role in SPOKEN_ROLES or (is_large and not self.open_calls):
            self.end()
        if not self.is_complete:
            self.rows.append(row)
            self.tokens += row.tokens
            self.open_calls |= ids_of_calls(row.data, "tool-call")
            self.open_calls -= ids_of_calls(row.data, *RESULT_KINDS)
            self.is_complete = self.tokens > self.max_tokens and self.count > 0

    def end(self) -> None:
        """Note that the chunk may end after the messages that were read."""
        if self.tokens <= self.max_tokens or not self.count:
            self.count = len(self.rows)
        self.is_complete = self.tokens >= self.max_tokens and self.count > 0
        self.open_calls.clear()  # a call without a result ends with the next prompt


def ids_of_calls(data: JSONMapping, *kinds: str) -> set[str]:
    """Return the IDs of the calls of a stored message, or those of their results."""
    return {part["tool_call_id"] for part in data.get("parts") or () if part.get("part_kind") in kinds}


def speaker_of(row: Message) -> str:
    """Return who speaks: a person by name, or the agent."""
    return row.author_name or (ROLE_NAMES.get(row.role) or "Agent")


def quote(row: Message, limits: ObservationLimits) -> str:
    """Return a message as data for a model, with its author and time. Long messages are shortened."""
    text = "\n".join(filter(None, (row.text, *outside_texts(row.data))))
    maximum = max(limits.chunk_tokens * BYTES_PER_TOKEN, MIN_CHARACTERS)
    quoted = text if len(text) <= maximum else f"{text[:maximum]}…"
    author, time = escape_attribute(speaker_of(row)), f"{row.created_at:%Y-%m-%dT%H:%MZ}"
    return f'<{QUOTE_TAG} author="{author}" at="{time}">\n{CLOSING_TAG.sub("&lt;/", quoted)}\n</{QUOTE_TAG}>'


def outside_texts(data: JSONMapping) -> Iterator[str]:
    """Yield the calls of tools and their results, which are not part of the text of a message."""
    for part in data.get("parts") or ():
        if part.get("part_kind") == "tool-call":
            yield f"Call of {part.get('tool_name')}: {text_or_json(part.get('args'))}"
        elif part.get("part_kind") in RESULT_KINDS:
            yield f"Result of {part.get('tool_name')}: {text_or_json(part.get('content'))}"
