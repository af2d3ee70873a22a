"""A thread as it goes on: its newest messages, its active runs, its memory, and whether anything changed."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from memory_app.views.access import get_page_thread
from memory_app.views.thread_context import memory_context, messages_context, page_state_of


@require_safe
@login_required
def live(request: HttpRequest, key: str) -> HttpResponse:
    """Return the newest messages and the memory of a thread, or 204 if its state is still that of the query."""
    thread = get_page_thread(request, key)
    if request.GET.get("state") == page_state_of(thread):
        return HttpResponse(status=204)
    return render(
        request, "threads/_live.html", messages_context(request, thread, 1) | memory_context(request, thread)
    )
