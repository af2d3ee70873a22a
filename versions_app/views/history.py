"""The pages that read a history: its timeline, one version, and who moved live when."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from agents_app.configuration.display import config_sections, unset_labels
from agents_app.models import Agent
from agents_app.views.access import can_duplicate, get_agent, permission_context
from versions_app.api.representation import full_version_json
from versions_app.compare.sections import Section, build_sections
from versions_app.forms.history import VersionFilterForm
from versions_app.history.charts import build_charts
from versions_app.history.timeline import build_entries, pruned_message, version_summaries
from versions_app.models import AgentVersion
from versions_app.views.lookups import get_version, history_url

VERSIONS_PER_PAGE = 20
MAX_RECENT_VERSIONS = 5


def header_context(request: HttpRequest, agent: Agent) -> dict[str, Any]:
    """What the head of every page of a history shows."""
    return {
        "nav": "agents",
        "agent": agent,
        "live": agent.active_version,
        "draft": agent.head_version if agent.has_draft else None,
        **permission_context(request, agent),
        "may_create": can_duplicate(request, agent),
    }


@require_safe
@login_required
def version_list(request: HttpRequest, agent_id: str) -> HttpResponse:
    """The history of an agent, newest first."""
    agent = get_agent(request, agent_id)
    kept = version_summaries(agent)
    filters = VersionFilterForm(request.GET, sorted({sketch.author_name for sketch in kept if sketch.author_name}))
    page = Paginator(filters.narrow(agent.versions.all()), VERSIONS_PER_PAGE).get_page(request.GET.get("page"))
    query = request.GET.copy()
    query.pop("page", None)

    context = {
        **header_context(request, agent),
        "tab": "versions",
        "filters": filters,
        "query": query.urlencode(),
        "page": page,
        "entries": build_entries(agent, page.object_list),
        "kept": len(kept),
        "gone": pruned_message(agent, len(kept)),
        "charts": build_charts(agent, kept),
    }
    return render(request, "versions/list.html", context)


@require_safe
@login_required
def recent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """The newest versions, as a fragment for the page of the agent."""
    agent = get_agent(request, agent_id)
    shown = build_entries(agent, agent.versions.all()[:MAX_RECENT_VERSIONS])
    return render(request, "versions/_recent.html", {**header_context(request, agent), "entries": shown})


@require_safe
@login_required
def view(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """One version, to be read."""
    agent = get_agent(request, agent_id)
    version = get_version(agent, number)
    based_on = agent.versions.filter(version_number=version.based_on or 0).first()
    numbers = agent.versions.order_by().values_list("version_number", flat=True)
    (entry,) = build_entries(agent, [version])
    context = {
        **header_context(request, agent),
        "version": version,
        "entry": entry,
        "changed": sections_since(based_on, version, request.GET.getlist("unfold")),
        "parts": config_sections(version.snapshot, entry.broken),
        "unset": unset_labels(version.snapshot),
        "newer": numbers.filter(version_number__gt=number).order_by("version_number").first(),
        "older": numbers.filter(version_number__lt=number).order_by("-version_number").first(),
    }
    return render(request, "versions/view.html", context)


def sections_since(before: AgentVersion | None, after: AgentVersion, unfolded: Collection[str]) -> Sequence[Section]:
    """What differs, where there is still something to compare with."""
    if before is None:
        return []
    return build_sections(before.snapshot, after.snapshot, side_by_side=False, unfolded=unfolded)


@require_safe
@login_required
def download_version(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """One version as a file, as the API answers it."""
    agent = get_agent(request, agent_id)
    version = get_version(agent, number)
    body = json.loads(full_version_json(version, agent))
    text = json.dumps(body, ensure_ascii=False, indent=2)
    disposition = content_disposition_header(True, f"{agent.pk}-v{number}.json")
    return HttpResponse(f"{text}\n".encode(), "application/json", headers={"Content-Disposition": disposition})


@require_safe
@login_required
def activations(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Who moved live when, newest first; the newest move can be undone."""
    agent = get_agent(request, agent_id)
    page = Paginator(agent.activations.all(), VERSIONS_PER_PAGE).get_page(request.GET.get("page"))
    kept = version_summaries(agent)
    newest = page.object_list[0] if page.number == 1 and page.object_list else None
    numbers = {sketch.number for sketch in kept}
    context = {
        **header_context(request, agent),
        "tab": "activations",
        "page": page,
        "newest": newest,
        "can_undo": newest is not None and newest.from_version_number in numbers,
        "undo_url": newest and history_url("undo", agent, newest.pk),
        "numbers": numbers,
        "kept": len(kept),
        "gone": pruned_message(agent, len(kept)),
        "charts": build_charts(agent, kept),
    }
    return render(request, "versions/activations.html", context)
