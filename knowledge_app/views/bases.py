"""Pages of knowledge bases: the list, a base with its documents and a search, its settings and its deletion."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access_app.role import Role
from agentcms.db.locks import reserve_new_key
from agentcms.db.text_conditions import any_contains_text, contains_text
from agentcms.errors import ApiError, Conflict, NotFound
from agentcms.web.dialogs import redirect_page, render_dialog, replaced_reason, row_stamp
from agentcms.web.list_state import encode_query, search_text
from agentcms.web.post_transactions import atomic_post
from agentcms.web.template_context import TemplateContext
from agents_app.configuration.sub_agents import listed_agents, name_agents
from agents_app.views.access import GET_POST
from jobs_app.models import Job
from knowledge_app.forms import AskForm, BaseForm, MetadataForm, TextForm, UrlForm
from knowledge_app.indexing.jobs import REINDEX_BASE, enqueue_reindexing
from knowledge_app.indexing.rebuild import create_live_index
from knowledge_app.models import Document, KnowledgeBase
from knowledge_app.quotas import require_base_quota
from knowledge_app.search.retrieval import DEFAULT_TOP_K, search_base
from knowledge_app.used_by import find_searching_agents
from knowledge_app.views.lookups import base_permissions, get_page_base, publisher_owners

ROWS_PER_PAGE = 50
MAX_LISTED_AGENTS = 50


@require_safe
@login_required
def base_list(request: HttpRequest) -> HttpResponse:
    """List the knowledge bases that the user may see."""
    waiting = Q(documents__status__in=[Document.Status.QUEUED, Document.Status.INDEXING])
    failed = Q(documents__status=Document.Status.FAILED)
    rows = KnowledgeBase.objects.for_user(request.user).annotate(
        document_count=Count("documents"),
        waiting_count=Count("documents", filter=waiting),
        failed_count=Count("documents", filter=failed),
    )
    if search := search_text(request.GET):
        rows = rows.filter(any_contains_text(("name", "key"), search))
    # Django leaves out the order of the model in a query that groups.
    rows = rows.order_by("name", "key")
    context = {
        "nav": "knowledge",
        "page": Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page")),
        "search": search,
        "query": encode_query(q=search),
        "may_create": bool(publisher_owners(request)),
    }
    return render(request, "knowledge/list.html", context)


@require_http_methods(GET_POST)
@login_required
def create(request: HttpRequest) -> HttpResponse:
    """Create a knowledge base."""
    owners = publisher_owners(request)
    form = BaseForm(request.POST or None, owners=owners)
    if not owners:
        messages.error(request, "Creating a knowledge base needs the Publisher role in a team.")
        return redirect("knowledge:list")
    if not form.is_valid():
        return render_settings(request, form, None)
    try:
        base = create_base(form)
    except Conflict as error:
        form.add_error("key", error.error)
        return render_settings(request, form, None, error.status)
    except ApiError as error:
        form.add_error("owner_id", error.error)
        return render_settings(request, form, None, error.status)
    messages.success(request, f"{base.name} was created. Add documents to it.")
    return redirect("knowledge:view", base.key)


def create_base(form: BaseForm) -> KnowledgeBase:
    """Store the base of a valid form with its index.

    Raise Conflict if the ID was taken meanwhile, and ApiError if the team has as many as it may have.
    """
    with transaction.atomic():
        reserve_new_key(KnowledgeBase, form.instance.key)
        require_base_quota(form.instance.owner_id)
        base: KnowledgeBase = form.save()
        create_live_index(base)
    return base


@require_http_methods(GET_POST)
@login_required
@atomic_post
def edit(request: HttpRequest, key: str) -> HttpResponse:
    """Change the settings of a base. Another embedder or chunk size builds another index."""
    base = get_page_base(request, key, Role.PUBLISHER)
    if request.method == "POST":
        try:
            # Locked, or a change between the check of the form and this one would be lost.
            base = KnowledgeBase.objects.get_locked(base.pk)
        except NotFound as error:
            messages.error(request, error.error)
            return redirect("knowledge:list")
    form = BaseForm(request.POST or None, instance=base, owners=[])
    if not form.is_valid():
        return render_settings(request, form, base)
    form.save_settings()
    if base.is_outdated:
        enqueue_reindexing(base, request.user)
    messages.success(request, f"{base.name} was saved.")
    return redirect("knowledge:view", base.key)


def render_settings(
    request: HttpRequest, form: BaseForm, base: KnowledgeBase | None, error_status: int = 422
) -> HttpResponse:
    status = error_status if form.errors else 200
    return render(request, "knowledge/settings.html", {"nav": "knowledge", "form": form, "base": base}, status=status)


@require_safe
@login_required
def view(request: HttpRequest, key: str) -> HttpResponse:
    """Display a base: its documents, forms that add some, and a search to try."""
    base = get_page_base(request, key)
    context = {
        **document_context(request, base),
        **search_context(request, base),
        "nav": "knowledge",
        "metadata_form": MetadataForm(base=base),
        # Several forms on one page: their inputs need different IDs.
        "text_form": TextForm(base=base, auto_id="text_%s"),
        "url_form": UrlForm(base=base, auto_id="url_%s"),
        **searching_agents_context(request, base),
    }
    return render(request, "knowledge/view.html", context)


def searching_agents_context(request: HttpRequest, base: KnowledgeBase) -> TemplateContext:
    """Return the first agents that search a base, by name, and how many others do."""
    agents = find_searching_agents(base).for_user(request.user)
    listed = [*agents.only("id", "name").order_by("name", "pk")[: MAX_LISTED_AGENTS + 1]]
    more = agents.count() - MAX_LISTED_AGENTS if len(listed) > MAX_LISTED_AGENTS else 0
    return {"agents": listed[:MAX_LISTED_AGENTS], "more_agents": more}


@require_safe
@login_required
def documents(request: HttpRequest, key: str) -> HttpResponse:
    """Render the table of documents, which requests itself again while some of them wait."""
    return render(request, "knowledge/_documents.html", document_context(request, get_page_base(request, key)))


def document_context(request: HttpRequest, base: KnowledgeBase) -> TemplateContext:
    # PostgreSQL refuses a NUL in a parameter.
    name = request.GET.get("name", "").replace("\0", "").strip()
    rows = base.documents.without_content()
    matches = rows.filter(contains_text("name", name)) if name else rows
    page = Paginator(matches, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    rebuilding = Job.objects.unfinished().filter(kind=REINDEX_BASE, parameters__base=base.pk).first()
    return {
        **base_permissions(request, base),
        "base": base,
        "page": page,
        "name": name,
        "query": urlencode({"name": name}) if name else "",
        "rebuilding": rebuilding,
        "is_waiting": rebuilding is not None or base.documents.waiting().exists(),
    }


def search_context(request: HttpRequest, base: KnowledgeBase) -> TemplateContext:
    """Return the search form, with the results of the question in the address."""
    # Not bound without a question, or the page would open with the error that there is none.
    form = AskForm({"top_k": DEFAULT_TOP_K, **request.GET.dict()} if "q" in request.GET else None, base=base)
    if not form.is_bound or not form.is_valid():
        return {"ask_form": form}
    values = form.cleaned_data
    try:
        top_k = values["top_k"] or DEFAULT_TOP_K
        chosen = {"condition": values["condition"], "min_score": values["min_score"]}
        return {"ask_form": form, "hits": search_base(base, values["q"], top_k=top_k, **chosen)}
    except ApiError as error:
        return {"ask_form": form, "problem": error.error}


@require_POST
@login_required
def reindex(request: HttpRequest, key: str) -> HttpResponse:
    """Index all documents of a base again."""
    base = get_page_base(request, key, Role.EDITOR)
    enqueue_reindexing(base, request.user)
    messages.success(request, "All documents are being indexed again. Searches work meanwhile.")
    return redirect("knowledge:view", base.key)


@require_http_methods(GET_POST)
@login_required
def delete(request: HttpRequest, key: str) -> HttpResponse:
    """Delete a base with its documents, after a question that names the agents that search it."""
    base = get_page_base(request, key, Role.PUBLISHER)
    why_not = replaced_reason(request, base)
    if request.method == "POST" and not why_not:
        base.delete()
        messages.success(request, f"{base.name} was deleted.")
        return redirect_page(request, reverse("knowledge:list"))
    names = name_agents(listed_agents(request.user, find_searching_agents(base)))
    context = {
        "nav": "knowledge",
        "title": f"Delete “{base.name}”?",
        "body": "knowledge/_delete.html",
        "row_stamp": row_stamp(base),
        "base": base,
        "document_count": base.documents.count(),
        "agent_names": names,
        "why_not": why_not,
        "buttons": [{"label": f"Delete {base.name}", "kind": "danger"}],
        "back": reverse("knowledge:view", args=[base.key]),
    }
    return render_dialog(request, context, 409 if request.method == "POST" else 200)
