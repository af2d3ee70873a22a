"""The comparison of any two versions of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.html import format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods

from agentcms.ids import parse_whole_number
from agentcms.web.template_context import TemplateContext
from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.field_labels import FIELD_LABELS
from agents_app.models import Agent
from agents_app.views.access import GET_POST, get_agent
from agents_app.views.agent_header import AgentTab, header_context
from versions_app.compare.sections import Section, build_sections, count_changes
from versions_app.models import AgentVersion
from versions_app.views.lookups import POINTER_NAMES, get_versions, history_url, pointer_numbers
from versions_app.views.unsaved import parse_editor_form, unsaved_snapshot

POINTER_LABELS = {"live": "Live", "head": "Draft"}
UNSAVED, UNSAVED_LABEL = "unsaved", "My unsaved text"


class CompareSide(NamedTuple):
    """One side of a comparison: a version, or the unsaved text of the editor."""

    label: str  # a number, `live`, `head` or UNSAVED
    title: str
    snapshot: JSONMapping
    version: AgentVersion | None = None
    is_live: bool = False
    is_draft: bool = False


@require_http_methods(GET_POST)
@login_required
def compare(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Show the differences between two versions, or between a version and the posted unsaved text."""
    agent = get_agent(request, agent_id)
    if "version" in request.GET:
        return redirect_to_pair(request, agent)
    params = request.POST if request.method == "POST" else request.GET
    before, after = sides = build_sides(request, agent, params)
    layout = chosen_layout(request, params)
    differences = build_sections(
        before.snapshot, after.snapshot, side_by_side=layout == "sides", unfolded=params.getlist("unfold")
    )
    header = header_context(request, agent, AgentTab.HISTORY)
    context = {
        **header,
        **action_context(agent, header, [side.version for side in sides if side.version]),
        "sides": sides,
        **sameness(agent, before, after),
        "options": version_options(agent, [side.label for side in sides]),
        "sections": differences,
        "changes": count_changes(differences),
        "unchanged": unchanged_labels(differences),
        **link_context(request, sides, layout),
    }
    response = render(request, "versions/compare.html", context)
    response.headers["Vary"] = "Sec-CH-UA-Mobile, Cookie"  # phones get another layout: see `chosen_layout`
    return response


def build_sides(request: HttpRequest, agent: Agent, params: QueryDict) -> list[CompareSide]:
    """Return both sides, of those that `default_labels` names. Raise Http404 for versions that do not exist.

    Without posted text, the draft takes the place of the unsaved text.
    """
    chosen = [params.get(name, "") for name in ("from", "to")]
    labels = [label or word for label, word in zip(chosen, default_labels(agent, any(chosen)), strict=True)]
    if request.method != "POST":
        labels = ["head" if label == UNSAVED else label for label in labels]
    # With the head, because unsaved text is a change of it.
    head, *versions = get_versions(agent, ["head", *(label for label in labels if label != UNSAVED)])
    sides = []
    for label in labels:
        if label == UNSAVED:
            unsaved = unsaved_snapshot(head, parse_editor_form(request, agent))
            sides.append(CompareSide(UNSAVED, UNSAVED_LABEL, unsaved))
        else:
            sides.append(version_side(agent, label, versions.pop(0)))
    return sides


def sameness(agent: Agent, before: CompareSide, after: CompareSide) -> dict[str, bool]:
    """Return whether both sides are the same version, and whether the agent has no other."""
    is_same = before.version is not None and before.version == after.version
    return {"is_same": is_same, "is_only": is_same and agent.versions.count() == 1}


def default_labels(agent: Agent, is_one_chosen: bool) -> Sequence[str]:
    """Return what is compared without parameters: live and the draft, or without a draft the version before live."""
    if agent.has_draft or is_one_chosen:
        return POINTER_NAMES
    live = pointer_numbers(agent)[0]
    earlier = agent.versions.filter(version_number__lt=live).order_by("-version_number")
    before = earlier.values_list("version_number", flat=True).first()
    return (str(before), "live") if before else POINTER_NAMES


def version_side(agent: Agent, label: str, version: AgentVersion) -> CompareSide:
    is_draft = agent.has_draft and version.pk == agent.head_version_id
    is_live = version.pk == agent.active_version_id
    return CompareSide(label, f"v{version.version_number}", version.snapshot, version, is_live, is_draft)


def chosen_layout(request: HttpRequest, params: QueryDict) -> str:
    """Return the layout of texts: by default side by side, and unified on phones."""
    layout = params.get("layout")
    if layout in ("sides", "unified"):
        return layout
    return "unified" if request.headers.get("Sec-CH-UA-Mobile") == "?1" else "sides"


def action_context(agent: Agent, permissions: Mapping[str, Any], pair: Sequence[AgentVersion]) -> TemplateContext:
    """Return which of the versions the user may restore and publish. Restoring the head would change nothing."""
    versions = dict.fromkeys(pair)
    return {
        "restorable": [v for v in versions if permissions["may_edit"] and v.pk != agent.head_version_id],
        "publishable": [v for v in versions if permissions["may_publish"] and v.pk != agent.active_version_id],
    }


def link_context(request: HttpRequest, sides: Sequence[CompareSide], layout: str) -> TemplateContext:
    """Return the parameters of links to this comparison, or the fields to post again for unsaved text."""
    labels = [side.label for side in sides]
    pair, swapped = ({"from": labels[first], "to": labels[1 - first]} for first in (0, 1))
    context = {
        "layout": layout,
        "side_by_side": layout == "sides",
        "pair": urlencode(pair),
        "swapped": urlencode({**swapped, "layout": layout}),
    }
    if UNSAVED in labels:
        posted = [(name, str(value)) for name, values in request.POST.lists() for value in values]
        fields = [(name, value) for name, value in posted if name != "csrfmiddlewaretoken"]
        return {**context, "posted_fields": fields, "posted_form": "posted-fields", "unfold_url": request.path}
    # By number, so that the link shows the same versions after live and the draft have moved.
    numbers = [side.version.version_number for side in sides if side.version]
    link = urlencode({"from": numbers[0], "to": numbers[1]})
    return {
        **context,
        "query": urlencode({**pair, "layout": layout}),
        "link": request.build_absolute_uri(f"{request.path}?{link}"),
    }


def unchanged_labels(differences: Sequence[Section]) -> list[str]:
    """Return the labels of the fields that do not differ."""
    changed = {section.field for section in differences}
    return [label for field, label in FIELD_LABELS.items() if field not in changed]


def redirect_to_pair(request: HttpRequest, agent: Agent) -> HttpResponse:
    """Redirect to the comparison of the selected versions, older first.

    A single one is compared with the head, and without a selection, or for the head alone, the defaults are compared.
    """
    # Any other text is 0, the number of no version.
    selected = sorted({parse_whole_number(value) for value in request.GET.getlist("version")} - {0})
    url = history_url("compare", agent)
    if selected in ([], [pointer_numbers(agent)[1]]):
        return redirect(url)
    query = urlencode({"from": str(selected[0]), "to": str(selected[-1] if selected[1:] else "head")})
    return redirect(f"{url}?{query}")


def version_options(agent: Agent, labels: Sequence[str]) -> list[SafeString]:
    """Return the options of both selects. A script adds the unsaved text of a browser.

    They are rendered here, because a template takes 30 ms for the options of 1,000 versions.
    """
    pointers = zip(POINTER_NAMES, pointer_numbers(agent), strict=True)
    choices = [(UNSAVED, UNSAVED_LABEL)] if UNSAVED in labels else []
    choices += [(name, f"{POINTER_LABELS[name]} (v{number})") for name, number in pointers]
    for number, name in agent.versions.values_list("version_number", "name"):
        choices.append((str(number), f"v{number}  {name}".strip()))
    selected, unselected = SafeString(" selected"), SafeString("")
    return [
        format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            ((value, selected if value == label else unselected, text) for value, text in choices),
        )
        for label in labels
    ]
