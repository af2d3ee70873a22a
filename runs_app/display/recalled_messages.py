"""The messages that a run has recalled, for display."""

from __future__ import annotations

from typing import NamedTuple

from access_app.caller import Caller
from memory_app.models import Message, Thread
from runs_app.models import AgentRun


class RememberedMessage(NamedTuple):
    """A message that a run has recalled. Its score is None if it stands beside a message that was found."""

    message: Message
    part: int
    score: float | None


class RememberedMessages(NamedTuple):
    """The recalled messages that a user may read, and the number of the others, which may also be deleted."""

    messages: list[RememberedMessage]
    hidden: int


def recalled_messages(run: AgentRun, user: Caller) -> RememberedMessages:
    """Return what a run has recalled, as far as a signed-in user may read the conversations."""
    stored = (run.remembered or {}).get("recall", [])
    if not stored:
        return RememberedMessages([], 0)
    readable = Thread.objects.readable_on_pages(user).filter(pk__in={item["thread"] for item in stored})
    rows = Message.objects.select_related("thread").filter(thread__in=readable)
    by_key = rows.in_bulk([item["message"] for item in stored])
    messages = [
        RememberedMessage(row, item["part"], item["score"])
        for item in stored
        if (row := by_key.get(item["message"])) is not None
    ]
    return RememberedMessages(messages, len(stored) - len(messages))
