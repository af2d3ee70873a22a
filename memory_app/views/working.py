"""The page of a working memory: editing it, its history, and restoring an earlier revision."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from agentcms.web.template_context import TemplateContext
from memory_app.forms.working import TEXT_NAME, WorkingMemoryForm, WorkingObjectForm
from memory_app.models import Thread, WorkingRevision
from memory_app.views.access import get_page_thread, get_with_visible_agent
from memory_app.views.links import own_realm, thread_url
from memory_app.views.working_rail import ThreadMemory, find_thread_memory, may_read
from memory_app.working import values
from memory_app.working.values import ChangeResult, Origin, WorkingMemory
from runs_app.models import AgentRun

NO_CHANGE_MESSAGE = "The working memory already has this value."


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, key: str) -> HttpResponse:
    """Edit the working memory beside one of the user's own threads. Others see it with its history."""
    thread = get_page_thread(request, key)
    memory = find_thread_memory(thread)
    if memory is None or not may_read(request, thread, memory):
        raise Http404
    is_own = thread.realm == own_realm(request)
    current = values.read_memory(memory.holder)
    form = build_form(request, memory, current)
    view = request.POST.get("show", "").rpartition(":")[2]  # the form in another view, without saving it
    if request.method == "POST" and not view:
        if not is_own:
            raise Http404
        if form.is_valid() and save(request, memory, form):
            return redirect(thread_url(request, thread))
    context = page_context(request, thread, memory) | {
        "memory": memory,
        "form": form,
        "value": form.structured(view) if isinstance(form, WorkingObjectForm) else None,
        "current": current,
        "is_own": is_own,
    }
    has_errors = not view and form.errors
    return render(request, "threads/working_memory.html", context, status=422 if has_errors else 200)


def page_context(request: HttpRequest, thread: Thread, memory: ThreadMemory) -> TemplateContext:
    revisions = list(values.revisions_of(memory.holder).select_related("user"))
    # Runs are deleted before the revisions that they made, and those of other users may be out of reach.
    runs = AgentRun.objects.for_user(request.user).filter(pk__in=[row.run_id for row in revisions if row.run_id])
    return {
        "nav": "runs",
        "thread": thread,
        "back": thread_url(request, thread),
        "revisions": revisions,
        "readable_runs": set(runs.values_list("pk", flat=True)),
    }


def build_form(request: HttpRequest, memory: ThreadMemory, current: WorkingMemory) -> WorkingMemoryForm:
    """Return the form of an object if the agent has a schema for its working memory, else that of a text."""
    data = request.POST or None
    if memory.options.json_schema is not None:
        return WorkingObjectForm(current, memory.options.json_schema, data)
    return WorkingMemoryForm(current, values.blank_text(memory.options), data)


def save(request: HttpRequest, memory: ThreadMemory, form: WorkingMemoryForm) -> bool:
    """Write the value of a form. Add what is wrong with it to the form."""
    origin = Origin(user_id=request.user.pk)
    revision = form.cleaned_data["revision"]
    outcome = values.write_text(memory.holder, form.new_text, memory.options, origin, revision)
    if outcome.has_moved:
        form.add_error(TEXT_NAME, "Somebody else changed it meanwhile. Copy your text, and open this page again.")
    form.add_issues(outcome.issues)
    if outcome.is_written:
        report_change(request, outcome, revision)
    return outcome.is_written


def report_change(request: HttpRequest, outcome: ChangeResult, before: int) -> None:
    is_changed = outcome.memory.revision != before
    messages.success(request, "The working memory was saved." if is_changed else NO_CHANGE_MESSAGE)


@login_required
@require_POST
def restore(request: HttpRequest, key: str, revision: int) -> HttpResponse:
    """Write an earlier revision of the working memory of one of the user's own threads again."""
    threads = Thread.objects.select_related("agent", "user")
    thread = get_with_visible_agent(request, threads, key, own_realm(request))
    memory = find_thread_memory(thread)
    if memory is None:
        raise Http404
    before = values.read_memory(memory.holder)
    try:
        outcome = values.restore_revision(memory.holder, revision, Origin(user_id=request.user.pk))
    except WorkingRevision.DoesNotExist:
        raise Http404 from None
    if outcome.memory.revision == before.revision:
        messages.info(request, NO_CHANGE_MESSAGE)
    else:
        messages.success(request, f"Revision {revision} was restored as revision {outcome.memory.revision}.")
    # To the page with the button: undo is beside the thread, and the revisions are on their own page.
    page = "view" if request.POST.get("back") == "thread" else "working_memory"
    return redirect(thread_url(request, thread, page))
