"""The comparison of any two versions of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from agentcms.web.list_state import parse_number
from agents_app.configuration.display import FIELD_LABELS
from agents_app.models import Agent
from agents_app.views.access import get_agent
from agents_app.views.header import AgentTab, header_context
from versions_app.compare.sections import Section, build_sections, count_changes
from versions_app.models import AgentVersion
from versions_app.views.lookups import POINTER_NAMES, get_versions, history_url, pointer_numbers

POINTER_LABELS = {"live": "Live", "head": "Draft"}


@require_safe
@login_required
def compare(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Show the differences between two versions."""
    agent = get_agent(request, agent_id)
    if "version" in request.GET:
        return redirect_to_pair(request, agent)
    labels = [request.GET.get(name) or word for name, word in zip(("from", "to"), POINTER_NAMES, strict=True)]
    before, after = get_versions(agent, labels)
    layout = "unified" if request.GET.get("layout") == "unified" else "sides"
    differences = build_sections(
        before.snapshot, after.snapshot, side_by_side=layout == "sides", unfolded=request.GET.getlist("unfold")
    )
    header = header_context(request, agent, AgentTab.HISTORY)
    context = {
        **header,
        **action_context(agent, header, (before, after)),
        "before": before,
        "after": after,
        "sides": [version_context(agent, version) for version in (before, after)],
        "choices": version_choices(agent),
        "sections": differences,
        "changes": count_changes(differences),
        "unchanged": unchanged_labels(differences),
        **link_context(labels, layout),
    }
    return render(request, "versions/compare.html", context)


def action_context(agent: Agent, permissions: Mapping[str, Any], pair: Sequence[AgentVersion]) -> dict[str, Any]:
    """Return which of the versions the user may restore and publish. Restoring the head would change nothing."""
    versions = dict.fromkeys(pair)
    return {
        "restorable": [v for v in versions if permissions["may_edit"] and v.pk != agent.head_version_id],
        "publishable": [v for v in versions if permissions["may_publish"] and v.pk != agent.active_version_id],
    }


def version_context(agent: Agent, version: AgentVersion) -> dict[str, Any]:
    """Return the context of a version and its chips."""
    return {
        "version": version,
        "is_live": version.pk == agent.active_version_id,
        "is_draft": agent.has_draft and version.pk == agent.head_version_id,
        "href": history_url("view", agent, version.version_number),
    }


def link_context(labels: Sequence[str], layout: str) -> dict[str, Any]:
    """Return the query strings of links to this comparison."""
    pair, swapped = ({"from": labels[first], "to": labels[1 - first]} for first in (0, 1))
    return {
        "compared": labels,
        "layout": layout,
        "side_by_side": layout == "sides",
        "pair": urlencode(pair),
        "swapped": urlencode({**swapped, "layout": layout}),
        "query": urlencode({**pair, "layout": layout}),
    }


def unchanged_labels(differences: Sequence[Section]) -> list[str]:
    """Return the labels of the fields that do not differ."""
    changed = {section.field for section in differences}
    return [label for field, label in FIELD_LABELS.items() if field not in changed]


def redirect_to_pair(request: HttpRequest, agent: Agent) -> HttpResponse:
    """Redirect to the comparison of the selected versions, older first. A single one is compared with the head."""
    selected = sorted({parse_number(value) for value in request.GET.getlist("version")} - {0})
    pair = [*selected, "head"] if len(selected) < 2 else [selected[0], selected[-1]]
    query = urlencode({"from": str(pair[0] if selected else "live"), "to": str(pair[-1])})
    return redirect(f"{history_url('compare', agent)}?{query}")


def version_choices(agent: Agent) -> list[tuple[str, str]]:
    """Return the options of the version selects as values and labels."""
    pointers = zip(POINTER_NAMES, pointer_numbers(agent), strict=True)
    options = [(name, f"{POINTER_LABELS[name]} (v{number})") for name, number in pointers]
    for number, name in agent.versions.values_list("version_number", "name"):
        options.append((str(number), f"v{number}  {name}".strip()))
    return options
