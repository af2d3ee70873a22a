"""Titles of threads: a job, `runs_app/memory/titling.py`, writes one after the first answer."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F

from jobs_app.kinds import register_title
from jobs_app.runner import enqueue
from memory_app.models import Thread

TITLE_THREAD = "title_thread"
MAX_FIRST_TITLE_LENGTH = 80  # characters
MARKS = "#*_`\"'“”„«» "  # of Markdown and quotations, around the words

# Here and not at the handler, whose module web processes do not import.
register_title(TITLE_THREAD, "Titles of threads")


def enqueue_title(thread_id: int, run_id: UUID, min_messages: int) -> None:
    """Let a worker write the title of a thread after the commit, if it has none and enough messages."""
    thread = Thread.objects.filter(pk=thread_id, title="").first()
    if thread is not None and thread.messages.filter(head_number=F("number")).count() >= min_messages:
        enqueue(TITLE_THREAD, {"thread": thread.pk, "run": str(run_id)})


def clean_title(text: str) -> str:
    """Return the first line of a text as a title, without the marks around it."""
    line = next((line.strip(MARKS) for line in text.splitlines() if line.strip(MARKS)), "")
    return line if len(line) <= MAX_FIRST_TITLE_LENGTH else f"{line[: MAX_FIRST_TITLE_LENGTH - 1].rstrip()}…"


def save_title(thread: Thread, title: str) -> bool:
    """Save a title unless somebody gave the thread one meanwhile."""
    return bool(title) and Thread.objects.filter(pk=thread.pk, title="").update(title=title) > 0
