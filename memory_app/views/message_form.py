"""The form of a thread with which its people send messages and signals to the agent."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from agentcms.web.dialogs import is_htmx
from memory_app.forms.message import SendForm
from memory_app.views.access import get_page_thread, may_send
from memory_app.views.links import thread_url


@require_POST
@login_required
def send(request: HttpRequest, key: str) -> HttpResponse:
    """Send a message or a signal to a thread in which the user takes part."""
    thread = get_page_thread(request, key)
    if not may_send(request, thread):
        raise Http404
    form = SendForm(request.POST)
    outcome = form.send(request, thread) if form.is_valid() else ""
    if outcome and not is_htmx(request):
        messages.success(request, outcome)
        return redirect(thread_url(request, thread))
    context = {
        "send_form": form if not outcome else SendForm(initial={"kind": form.cleaned_data["kind"]}),
        "send_url": thread_url(request, thread, "send"),
        "outcome": outcome,
        "thread": thread,
        "back": thread_url(request, thread),
        "nav": "runs",
    }
    template = "threads/_send.html" if is_htmx(request) else "threads/send.html"
    return render(request, template, context, status=200 if outcome else 422)
