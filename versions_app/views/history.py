"""The read-only pages of a history: timeline, version and live history."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from agentcms.ids import parse_whole_number
from agents_app.configuration.display import config_sections, unset_labels
from agents_app.models import Agent
from agents_app.views.access import can_duplicate, get_agent, sub_agent_names
from agents_app.views.agent_header import AgentTab, header_context
from versions_app.api.representation import full_version_json
from versions_app.compare.sections import Section, build_sections
from versions_app.forms.history import VersionFilterForm
from versions_app.history.charts import build_history_charts
from versions_app.history.folding import Saves, fold_saves
from versions_app.history.rows import build_history_rows
from versions_app.history.timeline import build_timeline, pruned_message
from versions_app.history.version_summaries import version_summaries
from versions_app.models import AgentVersion
from versions_app.views.lookups import get_version, history_url

ROWS_PER_PAGE = 20
MAX_RECENT_VERSIONS = 5


@require_safe
@login_required
def version_list(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Show the versions of an agent, newest first."""
    agent = get_agent(request, agent_id)
    summaries = version_summaries(agent.versions.all())
    # Of all versions, so that a filter does not take away the choices of another one.
    authors = sorted({summary.author_name for summary in summaries if summary.author_name})
    filters = VersionFilterForm(request.GET, authors)
    page = Paginator(rows_of_saves(agent, summaries, filters), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    query = request.GET.copy()
    query.pop("page", None)
    # Another page has other rows to open.
    query.pop("unfold", None)

    context = {
        **header_context(request, agent, AgentTab.HISTORY),
        "may_create": can_duplicate(request, agent),
        "filters": filters,
        "query": query.urlencode(),
        "page": page,
        "rows": build_history_rows(agent, list(page.object_list), opened_rows(request)),
        "pruned_message": pruned_message(agent, len(summaries)),
        "charts": build_history_charts(agent, summaries),
    }
    return render(request, "versions/list.html", context)


def rows_of_saves(agent: Agent, summaries: Saves, filters: VersionFilterForm) -> Sequence[Saves]:
    """Return the saves of each row of the history, newest first. A filtered history shows every match."""
    if filters.active_filters():
        return [[match] for match in reversed(version_summaries(filters.filter_versions(agent.versions.all())))]
    return fold_saves(reversed(summaries), (agent.active_version_id, agent.head_version_id))


def opened_rows(request: HttpRequest) -> set[int]:
    """Return the newest version of each row whose saves are shown one by one."""
    return {parse_whole_number(number) for number in request.GET.getlist("unfold")}


@require_safe
@login_required
def recent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Render the newest versions, a fragment of the editor."""
    agent = get_agent(request, agent_id)
    entries = build_timeline(agent, agent.versions.defer("snapshot_text")[:MAX_RECENT_VERSIONS])
    return render(request, "versions/_recent.html", {"agent": agent, "entries": entries})


@require_safe
@login_required
def view(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """Show a version."""
    agent = get_agent(request, agent_id)
    version = get_version(agent, number)
    based_on = agent.versions.filter(version_number=version.based_on or 0).first()
    numbers = agent.versions.order_by().values_list("version_number", flat=True)
    (entry,) = build_timeline(agent, [version])
    context = {
        **header_context(request, agent, AgentTab.HISTORY),
        "may_create": can_duplicate(request, agent),
        "version": version,
        "entry": entry,
        "changed": sections_since(based_on, version, request.GET.getlist("unfold")),
        "parts": config_sections(
            version.snapshot, entry.missing_references, sub_agent_names(request, version.snapshot)
        ),
        "unset": unset_labels(version.snapshot),
        "newer": numbers.filter(version_number__gt=number).order_by("version_number").first(),
        "older": numbers.filter(version_number__lt=number).order_by("-version_number").first(),
    }
    return render(request, "versions/view.html", context)


def sections_since(before: AgentVersion | None, after: AgentVersion, unfolded: Collection[str]) -> Sequence[Section]:
    """Return the differences from `before`, or nothing if that version does not exist."""
    if before is None:
        return []
    return build_sections(before.snapshot, after.snapshot, side_by_side=False, unfolded=unfolded)


@require_safe
@login_required
def download_version(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """Download a version as JSON, in the format of the API."""
    agent = get_agent(request, agent_id)
    version = get_version(agent, number)
    body = json.loads(full_version_json(version, agent))
    # Indented for people: the API answers on one line.
    text = json.dumps(body, ensure_ascii=False, indent=2)
    disposition = content_disposition_header(True, f"{agent.pk}-v{number}.json")
    return HttpResponse(f"{text}\n".encode(), "application/json", headers={"Content-Disposition": disposition})


@require_safe
@login_required
def live_history(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Show which version was live when, newest first. The newest entry can be undone."""
    agent = get_agent(request, agent_id)
    page = Paginator(agent.activations.all(), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    summaries = version_summaries(agent.versions.all())
    # Only the newest entry can be undone, and only if its earlier version was not pruned.
    newest = page.object_list[0] if page.number == 1 and page.object_list else None
    numbers = {summary.number for summary in summaries}
    context = {
        **header_context(request, agent, AgentTab.LIVE_HISTORY),
        "page": page,
        "newest": newest,
        "can_undo": newest is not None and newest.from_version_number in numbers,
        "undo_url": newest and history_url("undo", agent, newest.pk),
        "numbers": numbers,
        "charts": build_history_charts(agent, summaries),
    }
    return render(request, "versions/live_history.html", context)
