"""Comparing: any two versions of an agent, and unsaved text with what is saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from agentcms.web.list_state import parse_number
from agents_app.configuration.display import FIELD_LABELS
from agents_app.models import Agent
from agents_app.views.access import get_agent, permission_context
from versions_app.compare.sections import Section, build_sections
from versions_app.models import AgentVersion
from versions_app.views.lookups import history_url

POINTER_NAMES = ("live", "head")


@require_safe
@login_required
def compare(request: HttpRequest, agent_id: str) -> HttpResponse:
    """What differs between two versions, by meaning."""
    agent = get_agent(request, agent_id)
    if "version" in request.GET:
        return redirect_to_pair(request, agent)
    asked = [request.GET.get(name) or word for name, word in zip(("from", "to"), POINTER_NAMES, strict=True)]
    before, after = get_versions(agent, asked)
    layout = "unified" if request.GET.get("layout") == "unified" else "sides"
    found = build_sections(
        before.snapshot, after.snapshot, side_by_side=layout == "sides", unfolded=request.GET.getlist("unfold")
    )
    context = {
        "nav": "agents",
        "agent": agent,
        "before": before,
        "after": after,
        "both": [version_context(agent, version) for version in (before, after)],
        **action_context(request, agent, (before, after)),
        "choices": version_choices(agent),
        "sections": found,
        "changes": count_changes(found),
        "unchanged": unchanged_labels(found),
        **link_context(asked, layout),
    }
    return render(request, "versions/compare.html", context)


def action_context(request: HttpRequest, agent: Agent, pair: Sequence[AgentVersion]) -> dict[str, Any]:
    """What may be done from here with either version, by this caller: the head is what restoring would come to."""
    allowed, each = permission_context(request, agent), dict.fromkeys(pair)
    return {
        "restorable": [one for one in each if allowed["may_edit"] and one.pk != agent.head_version_id],
        "releasable": [one for one in each if allowed["may_publish"] and one.pk != agent.active_version_id],
        "limits": allowed["limits"],
    }


def version_context(agent: Agent, version: AgentVersion) -> dict[str, Any]:
    """A version beside its badges."""
    return {
        "version": version,
        "is_live": version.pk == agent.active_version_id,
        "is_draft": agent.has_draft and version.pk == agent.head_version_id,
        "href": history_url("view", agent, version.version_number),
    }


def link_context(asked: Sequence[str], layout: str) -> dict[str, Any]:
    """The comparison that was asked for, as it stands in links."""
    pair, swapped = ({"from": asked[first], "to": asked[1 - first]} for first in (0, 1))
    return {
        "asked": asked,
        "layout": layout,
        "side_by_side": layout == "sides",
        "pair": urlencode(pair),
        "swapped": urlencode({**swapped, "layout": layout}),
        "query": urlencode({**pair, "layout": layout}),
    }


def unchanged_labels(found: Sequence[Section]) -> list[str]:
    """The labels of the fields that do not differ."""
    changed = {each.field for each in found}
    return [label for field, label in FIELD_LABELS.items() if field not in changed]


def redirect_to_pair(request: HttpRequest, agent: Agent) -> HttpResponse:
    """The comparison of the two versions that were ticked, the older one first; of one, with live."""
    ticked = sorted({parse_number(value) for value in request.GET.getlist("version")} - {0})
    pair = [*ticked, "head"] if len(ticked) < 2 else [ticked[0], ticked[-1]]
    query = urlencode({"from": str(pair[0] if ticked else "live"), "to": str(pair[-1])})
    return redirect(f"{history_url('compare', agent)}?{query}")


def get_versions(agent: Agent, asked: Sequence[str]) -> list[AgentVersion]:
    """Two versions of an agent by number, `live` or `head`, in one query."""
    pointers = dict(zip(POINTER_NAMES, pointer_numbers(agent), strict=True))
    numbers = [pointers.get(word) or parse_number(word) for word in asked]
    found = {version.version_number: version for version in agent.versions.filter(version_number__in=numbers)}
    if not all(number in found for number in numbers):
        raise Http404
    return [found[number] for number in numbers]


def pointer_numbers(agent: Agent) -> list[int]:
    """The numbers of the live and the head version."""
    pointers: Any = (agent.active_version, agent.head_version)
    return [version.version_number for version in pointers]


def version_choices(agent: Agent) -> list[tuple[str, str]]:
    """What may be compared, as values and words for a select."""
    known = [
        (word, f"{word.title()} (v{number})")
        for word, number in zip(POINTER_NAMES, pointer_numbers(agent), strict=True)
    ]
    for number, name in agent.versions.values_list("version_number", "name"):
        known.append((str(number), f"v{number}  {name}".strip()))
    return known


def count_changes(found: Sequence[Section]) -> int:
    """How many steps `n` and `p` take."""
    rows = sum(row.change is not None for each in found for block in each.blocks for row in block.rows)
    return (
        rows
        + sum(item.change is not None for each in found for item in each.items)
        + sum(len(each.paths) for each in found)
    )
