"""The page that compares two experiments."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agentcms.errors import ApiError
from agentcms.ids import parse_uuid
from evals_app.comparing.stored import find_comparison, require_comparable
from evals_app.comparing.words import mark_words
from evals_app.models import Experiment, ExperimentResult
from evals_app.views.lookups import ROWS_PER_PAGE, get_page_experiment, text_of_json


@require_safe
@login_required
def compare(request: HttpRequest) -> HttpResponse:
    """Compare two experiments: the statistics in words, and the answers that got worse first.

    `a` is the baseline, unless `order=time` asks for the older one.
    """
    ids = [parse_uuid(request.GET.get(name, "")) for name in ("a", "b")]
    pair = [get_page_experiment(request, experiment_id) for experiment_id in ids]
    if request.GET.get("order") == "time":
        pair.sort(key=lambda experiment: experiment.created_at)
    baseline, candidate = pair
    context: dict[str, Any] = {"nav": "evals", "baseline": baseline, "candidate": candidate}
    try:
        require_comparable(baseline, candidate)
        comparison = find_comparison(baseline, candidate, request.user)
    except ApiError as error:
        return render(request, "evals/compare.html", {**context, "problem": error.error}, status=409)
    statistics = comparison.statistics or {}
    page: Any = Paginator(statistics.get("items", []), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    context |= {"statistics": statistics, "page": page, "rows": compared_rows(baseline, candidate, page)}
    context |= {"query": f"a={baseline.pk}&b={candidate.pk}", "scorers": named_scorers(candidate, statistics)}
    return render(request, "evals/compare.html", context)


def named_scorers(experiment: Experiment, statistics: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the name and the statistics of each scorer that both experiments have."""
    scorers = (experiment.summary or {}).get("scorers", {})
    return [(scorers.get(key, {}).get("name") or key, entry) for key, entry in statistics.get("scorers", {}).items()]


def compared_rows(baseline: Experiment, candidate: Experiment, page: Any) -> list[dict[str, Any]]:
    """Return the items of a page with both answers, whose differing words are marked."""
    ids = [row["itemId"] for row in page]
    results_by_item: dict[tuple[UUID, str], ExperimentResult] = {}
    for one in (baseline, candidate):
        results = one.results.filter(item__in=ids, attempt=0).select_related("item_version")
        results_by_item |= {(one.pk, str(result.item_id)): result for result in results}
    rows = []
    for entry in page:
        before, after = (results_by_item.get((one.pk, entry["itemId"])) for one in (baseline, candidate))
        if before is None or after is None:
            continue
        old, new = mark_words(text_of_json(before.output), text_of_json(after.output))
        rows.append({"change": entry["change"], "before": before, "after": after, "old": old, "new": new})
        rows[-1]["input"] = text_of_json(before.effective_input)
    return rows
