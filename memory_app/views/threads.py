"""Pages of conversations: the list and a single thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from access_app.permissions import owner_ids_for
from access_app.role import Role
from agentcms.api.renderers import encode_json
from agentcms.db.text_conditions import any_contains_text
from agentcms.ids import parse_whole_number
from agentcms.web.dialogs import redirect_page, render_dialog, replaced_reason, row_stamp
from agentcms.web.downloads import file_response
from agentcms.web.list_state import search_text
from agents_app.models import Agent
from agents_app.views.access import can_choose_agent
from memory_app.api.representation import thread_body
from memory_app.forms.message import SendForm
from memory_app.history.first_words import first_user_text, shortened_words
from memory_app.history.wire_messages import place_questions, wire_messages
from memory_app.models import Message, Participant, Thread
from memory_app.views.access import get_page_thread, may_send, readable_threads
from memory_app.views.links import own_realm, thread_url
from memory_app.views.recall import recall_context
from memory_app.views.thread_context import MESSAGES_ON_PAGE, memory_context, messages_context
from runs_app.engine import run_ends
from runs_app.memory.thread_deletion import delete_threads
from runs_app.models import AgentRun
from tools_app.acp.permissions import thread_permissions

ROWS_PER_PAGE = 30
EXPORT_BATCH = 500
MAX_FIRST_WORDS = 100  # characters
MAX_AGENT_CHOICES = 500


class ThreadRow(NamedTuple):
    """A row of the list. `first_words` are those of a user, for a thread without a title."""

    thread: Thread
    url: str
    message_count: int
    first_words: str


@require_safe
@login_required
def thread_list(request: HttpRequest) -> HttpResponse:
    """List the user's threads, or those of an agent that the user may publish, the latest first."""
    agent_id, search = request.GET.get("agent", ""), search_text(request.GET)
    # Not joined: the database would compare the columns of the agents to find distinct rows. Of a team that the user
    # has left, an agent has no name here, as on the page of the thread.
    agents = Prefetch("agent", Agent.objects.for_user(request.user).only("name"))
    threads = find_threads(request, agent_id, search).select_related(None).prefetch_related(agents, "user")
    pages = Paginator(threads.order_by("-updated_at", "-pk"), ROWS_PER_PAGE)
    page: Page[Thread] = pages.get_page(request.GET.get("page"))
    context = {
        "nav": "runs",
        "page": page,
        "rows": thread_rows(request, page),
        "agent_id": agent_id,
        "search": search,
        "agents": published_agents(request, agent_id),
        "max_agents": MAX_AGENT_CHOICES,
        "can_choose_agent": partial(can_choose_agent, request),  # for an empty list only
        "query": urlencode({name: value for name, value in (("agent", agent_id), ("q", search)) if value}),
    }
    return render(request, "threads/list.html", context)


def thread_rows(request: HttpRequest, page: Page[Thread]) -> list[ThreadRow]:
    """Return the rows of a page of threads, with their numbers of messages and their first words."""
    heads = Count("messages", filter=Q(messages__head_number=F("messages__number")))
    # Not annotated to the list: the join with the participants would count each message several times.
    listed = Thread.objects.filter(pk__in=[thread.pk for thread in page])
    figures = listed.annotate(n=heads, first_text=first_user_text()).values_list("pk", "n", "first_text")
    counts = {pk: (n, shortened_words(text or "", MAX_FIRST_WORDS)) for pk, n, text in figures}
    return [ThreadRow(row, thread_url(request, row), *counts.get(row.pk, (0, ""))) for row in page]


def find_threads(request: HttpRequest, agent_id: str, search: str) -> QuerySet[Thread]:
    """Return the user's threads, or those of an agent, whose title, ID or resource contains a text."""
    threads = readable_threads(request).filter(parent=None)
    if agent_id:
        threads = threads.filter(agent_id=agent_id)
    else:
        # Not joined, which would list an own thread once for each of its participants.
        joined = Participant.objects.filter(user=request.user.pk).values("thread")
        threads = threads.filter(Q(realm=own_realm(request)) | Q(pk__in=joined))
    if search:
        columns = ("title", "key", "resource_key")
        threads = threads.filter(any_contains_text(columns, search))
    return threads


def published_agents(request: HttpRequest, agent_id: str) -> list[tuple[str, str]]:
    """Return the agents with threads whose conversations the user may read as a publisher, as ID and name.

    Of many agents, these are the first by name, one more than the page offers, and the chosen one.
    """
    agents = Agent.objects.for_user(request.user).filter(Exists(Thread.objects.filter(agent=OuterRef("pk"))))
    if not request.user.is_superuser:
        agents = agents.filter(owner_id__in=owner_ids_for(request.user, Role.PUBLISHER))
    rows = agents.order_by("name", "pk").values_list("pk", "name")
    first = dict(rows[: MAX_AGENT_CHOICES + 1])
    # A list that shows another choice than its own would change it with the next search.
    if agent_id and agent_id not in first:
        first.update(rows.filter(pk=agent_id))
    return [*first.items()]


def page_number(request: HttpRequest, thread: Thread) -> str | int | None:
    """Return the page that the query names, or the one with the message of this number."""
    number = parse_whole_number(request.GET.get("message", ""))
    if not number:
        return request.GET.get("page")
    newer = thread.messages.filter(head_number=F("number"), number__gt=number).count()
    return newer // MESSAGES_ON_PAGE + 1


@require_safe
@login_required
def view(request: HttpRequest, key: str) -> HttpResponse:
    """Display who said what and when in a thread, the newest page first."""
    thread = get_page_thread(request, key)
    runs = AgentRun.objects.for_user(request.user).filter(thread=thread, parent=None)
    context = {
        "nav": "runs",
        **messages_context(request, thread, page_number(request, thread)),
        "send_form": SendForm() if may_send(request, thread) else None,
        "send_url": thread_url(request, thread, "send"),
        "runs": runs.order_by("-created_at")[:10],
        "participants": thread.participants.select_related("user"),
        **recall_context(request, thread),
        "permissions": thread_permissions(thread.pk),
        "delete_url": thread_url(request, thread, "delete"),
        "participants_url": thread_url(request, thread, "participants"),
        **memory_context(request, thread),
        "export_url": thread_url(request, thread, "export"),
    }
    return render(request, "threads/view.html", context)


@require_safe
@login_required
def export(request: HttpRequest, key: str) -> FileResponse:
    """Download a thread as JSON lines: the thread, then its messages."""
    thread = get_page_thread(request, key)
    # Written to a file first: a client that reads slowly would hold a thread of the server.
    return file_response(thread_lines(thread), "thread.jsonl", "application/x-ndjson")


def thread_lines(thread: Thread) -> Iterator[bytes]:
    yield encode_json({"thread": thread_body(thread)}) + b"\n"
    last = 0
    heads = thread.messages.filter(head_number=F("number")).order_by("number").values_list("number", "role")
    # By the first rows of messages, so that no answer is divided between two batches.
    while batch := [*heads.filter(number__gt=last)[:EXPORT_BATCH]]:
        numbers = numbers_of_batch(batch)
        rows = thread.messages.filter(head_number__in=numbers).order_by("number")
        yield from (encode_json(message) + b"\n" for message in wire_messages(thread, place_questions(rows)))
        last = numbers[-1]


def numbers_of_batch(heads: Sequence[tuple[int, str]]) -> list[int]:
    """Return the numbers of messages without the last signals, whose question may be in the next batch."""
    count = len(heads)
    while count and len(heads) == EXPORT_BATCH and heads[count - 1][1] == Message.Role.SIGNAL:
        count -= 1
    return [number for number, _ in heads[: count or None]]


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, key: str) -> HttpResponse:
    """Delete one of the user's own threads, after a question."""
    thread = get_object_or_404(Thread, key=key, realm=own_realm(request))
    why_not = replaced_reason(request, thread)
    if request.method == "POST" and not why_not:
        # A run outlives its thread, and would go on for nobody.
        for run in AgentRun.objects.unfinished().filter(thread=thread, parent=None):
            run_ends.cancel_run(run.pk)
        delete_threads([thread.pk])
        messages.success(request, "The conversation was deleted.")
        return redirect_page(request, reverse("threads:list"))
    context = {
        "nav": "runs",
        "title": f"Delete “{thread.title or thread.key}”?",
        "body": "threads/_delete.html",
        "thread": thread,
        "row_stamp": row_stamp(thread),
        "why_not": why_not,
        "buttons": [{"label": "Delete the conversation", "kind": "danger"}],
        "back": reverse("threads:view", args=[thread.key]),
    }
    return render_dialog(request, context, 409 if request.method == "POST" else 200)
