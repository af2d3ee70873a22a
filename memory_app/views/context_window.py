"""The window of a thread: the messages that its agent gets with the next message, against the limits of its memory."""

from __future__ import annotations

from dataclasses import dataclass

from agents_app.configuration.memory.options import parse_memory_options
from memory_app.history.messages import window_rows
from memory_app.models import Thread
from memory_app.observational.limits import observational_options_of_agent

REGISTERED_LAST_MESSAGES = 20  # of the registered memory "last-messages"


@dataclass(frozen=True)
class ThreadWindow:
    """The messages and tokens of the window, and their limits. A limit that is None does not exist."""

    messages: int
    max_messages: int
    tokens: int
    max_tokens: int | None


def find_window(thread: Thread) -> ThreadWindow | None:
    """Return the window of a thread, or None if its agent has no memory, or one with a window of its own.

    An agent that observes has gauges among its observations instead.
    """
    if observational_options_of_agent(thread.agent) is not None:
        return None
    version = thread.agent.active_version if thread.agent else None
    memory = version.snapshot.get("memory") if version else None
    options = parse_memory_options(memory)
    if options is None and memory != "last-messages":
        return None
    max_messages = options.max_messages if options else REGISTERED_LAST_MESSAGES
    max_tokens = options.max_tokens if options else None
    rows = window_rows(thread.pk, max_messages, max_tokens)
    heads = {row.head_number for row in rows}
    return ThreadWindow(len(heads), max_messages, sum(row.tokens for row in rows), max_tokens)
