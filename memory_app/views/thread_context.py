"""The template contexts of a thread: its newest messages and active runs, and its memory."""

from __future__ import annotations

from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.db.models import Count, F, Max, Q
from django.http import HttpRequest
from django.urls import reverse

from agentcms.web.template_context import TemplateContext
from memory_app.history.thread_signals import waiting_signals
from memory_app.models import Thread
from memory_app.views.context_window import find_window
from memory_app.views.links import own_realm, thread_url
from memory_app.views.messages import build_message_entries
from memory_app.views.observations import observed_context
from memory_app.views.working_rail import rail_context
from runs_app.display.answer import RunView, build_run_views
from runs_app.models import AgentRun

MESSAGES_ON_PAGE = 50


def page_state_of(thread: Thread) -> str:
    """Return a text that changes when the page of a thread has something else to show."""
    open_runs = AgentRun.objects.unfinished().filter(thread=thread, parent=None).order_by("pk")
    runs = "_".join(f"{run_id}-{status}" for run_id, status in open_runs.values_list("pk", "status"))
    stamp = int(thread.updated_at.timestamp() * 1000)
    return f"{thread.last_number}.{stamp}.{waiting_signals(thread.pk).count()}.{memory_state_of(thread)}.{runs}"


def memory_state_of(thread: Thread) -> str:
    """Return a text that changes with the working memory and the observations of a thread."""
    noted = thread.resource.working_revision if thread.resource else 0
    observed = thread.observations.aggregate(newest=Max("pk"), active=Count("pk", filter=Q(is_active=True)))
    observing = int(thread.observing_until.timestamp()) if thread.observing_until else 0
    return f"{thread.working_revision}-{noted}-{observed['newest'] or 0}-{observed['active']}-{observing}"


def messages_context(request: HttpRequest, thread: Thread, page_number: str | int | None) -> TemplateContext:
    """Return the context of a page of messages. The newest page also has the runs that are not over."""
    state = page_state_of(thread)  # first: what comes meanwhile changes it, so that the page is fetched again
    # The numbers alone: messages may be long, and only those of one page are shown.
    numbers = thread.messages.filter(head_number=F("number")).order_by("-number").values_list("number", flat=True)
    page: Page[int] = Paginator(numbers, MESSAGES_ON_PAGE).get_page(page_number)
    is_newest = page.number == 1
    return {
        "thread": thread,
        "page": page,
        "query": urlencode({"realm": request.GET["realm"]}) if request.GET.get("realm") else "",
        "entries": build_message_entries(thread, [*page], request.user),
        "active": active_runs(request, thread) if is_newest else [],
        "live_url": thread_url(request, thread, "live") if is_newest else "",
        "state": state,
        "thread_page_url": reverse("threads:view", args=[thread.key]),
    }


def memory_context(request: HttpRequest, thread: Thread) -> TemplateContext:
    """Return the context of what is remembered beside a thread: its window, working memory and observations."""
    return {
        "is_own": thread.realm == own_realm(request),
        "window": find_window(thread),
        **rail_context(request, thread),
        **observed_context(request, thread),
    }


def active_runs(request: HttpRequest, thread: Thread) -> list[RunView]:
    """Return the runs of a thread that are not over, as far as the user may read them."""
    runs = AgentRun.objects.for_user(request.user).with_roles(request.user).unfinished()
    return build_run_views([*runs.filter(thread=thread, parent=None).order_by("created_at", "pk")], request.user)
