"""The conversations of a user with an agent, between which the columns of the playground choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.timezone import localtime

from access_app.caller import Caller
from agentcms.ids import parse_uuid
from agentcms.web.text_direction import isolate_text
from agents_app.models import Agent
from memory_app.history.first_words import first_user_text, shortened_words
from memory_app.models import Thread
from memory_app.realms import user_realm
from memory_app.views.links import thread_url
from runs_app.models import AgentRun

NEW = "new"  # the choice of a column that starts a conversation
MAX_CONVERSATIONS = 20
MAX_LABEL_LENGTH = 60


class ConversationOption(NamedTuple):
    """An option of the select of conversations."""

    value: str
    label: str


def own_threads(agent: Agent, user: Caller) -> QuerySet[Thread]:
    """Return the conversations with an agent in the realm of a user, the latest first."""
    threads = Thread.objects.filter(realm=user_realm(user.pk or 0), agent=agent.pk, parent=None, experiment_id=None)
    return threads.order_by("-updated_at", "-pk")


def conversation_options(agent: Agent, user: Caller, questions: Mapping[int, str]) -> list[ConversationOption]:
    """Return the latest conversations of a user with an agent.

    `questions` are the first words in conversations that the page shows, whose messages may not be stored yet.
    """
    threads = own_threads(agent, user).annotate(first_text=first_user_text())
    columns = ("key", "realm", "title", "resource_key", "updated_at")
    rows = threads.only(*columns)[:MAX_CONVERSATIONS]
    texts = {row.pk: vars(row)["first_text"] or questions.get(row.pk, "") for row in rows}
    return [ConversationOption(str(row.pk), conversation_label(row, texts[row.pk])) for row in rows]


def conversation_label(thread: Thread, first_text: str) -> str:
    """Return the title of a conversation or its first words, its last continuation, and the owner of its memory."""
    name = shortened_words(thread.title or first_text or thread.key, MAX_LABEL_LENGTH)
    resource = f", {thread.resource_key}" if thread.resource_key != thread.realm else ""
    return f"{isolate_text(name)} ({date_format(localtime(thread.updated_at), 'j M, H:i e')}{resource})"


def find_chosen_threads(agent: Agent, user: Caller, choices: Sequence[str]) -> dict[str, Thread]:
    """Return the conversations that columns have chosen and the user may continue, by choice."""
    # More digits would not fit the column.
    keys = [choice for choice in choices if choice.isascii() and choice.isdigit() and len(choice) < 19]
    return {str(thread.pk): thread for thread in own_threads(agent, user).filter(pk__in=keys)} if keys else {}


def last_run_of(agent: Agent, thread: Thread, run: str) -> str:
    """Return the run with which a conversation ends on the page: this one if it is part of it, else the last one."""
    runs = AgentRun.objects.filter(agent=agent, parent=None, thread=thread).order_by("-created_at", "-pk")
    run_id = parse_uuid(run)
    if run_id is not None and runs.filter(pk=run_id).exists():
        return run
    return str(runs.values_list("pk", flat=True).first() or "")


def conversation_link(request: HttpRequest, thread: Thread | None) -> str:
    """Return the URL of the page of a conversation, or a blank text."""
    return thread_url(request, thread) if thread is not None and thread.realm else ""
