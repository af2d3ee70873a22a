"""Pages of experiments: start, progress with results, cancel, and the comparison of two."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.ids import parse_uuid
from evals_app.comparing.stored import find_comparison, require_comparable
from evals_app.comparing.words import mark_words
from evals_app.experiments.creation import create_experiment
from evals_app.experiments.ending import request_cancel
from evals_app.experiments.options import parse_experiment
from evals_app.experiments.walk import stop_runs
from evals_app.models import Experiment, ExperimentResult
from evals_app.views.lookups import ROWS_PER_PAGE, get_page_dataset, get_page_experiment, text_of_json


@require_POST
@login_required
def start(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """Start an experiment over a dataset."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    body: dict[str, Any] = {
        "targetType": "agent",
        "targetId": request.POST.get("agent", ""),
        "agentVersion": request.POST.get("version") or "live",
    }
    if keys := [key.strip() for key in request.POST.get("scorers", "").split(",") if key.strip()]:
        body["scorerIds"] = keys
    try:
        experiment = create_experiment(dataset, parse_experiment(body), request.user)
    except ApiError as error:
        messages.error(request, f"{error.error.rstrip('.')}.")
        return redirect("evals:dataset", dataset.pk)
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("evals:dataset", dataset.pk)
    return redirect("evals:experiment", experiment.pk)


@require_safe
@login_required
def experiment(request: HttpRequest, experiment_id: UUID) -> HttpResponse:
    """Show the progress of an experiment with its results. While it runs, the page asks for itself again."""
    row = get_page_experiment(request, experiment_id)
    results = row.results.select_related("item_version").order_by("item_id", "attempt")
    only = request.GET.get("only", "")
    if only == "failed":
        results = results.filter(error__isnull=False)
    page: Any = Paginator(results, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    others = row.dataset.experiments.exclude(pk=row.pk).exclude(status__in=Experiment.UNFINISHED)[:20]
    context = {
        "nav": "evals",
        "experiment": row,
        "page": page,
        "rows": [result_row(result) for result in page],
        "only": only,
        "scorers": row.summary.get("scorers", {}),
        "others": others if row.is_finished else [],
    }
    return render(request, "evals/experiment.html", context)


def result_row(result: ExperimentResult) -> dict[str, Any]:
    return {
        "result": result,
        "input": text_of_json(result.effective_input),
        "output": text_of_json(result.output),
        "ground_truth": text_of_json(result.effective_ground_truth),
        "error": (result.error or {}).get("message", ""),
    }


@require_POST
@login_required
def cancel(request: HttpRequest, experiment_id: UUID) -> HttpResponse:
    """Cancel an experiment. Its results stay."""
    row = get_page_experiment(request, experiment_id)
    get_page_dataset(request, row.dataset_id, Role.EDITOR)
    request_cancel(row)
    stop_runs(row)
    messages.success(request, "No new item starts. Results stay.")
    return redirect("evals:experiment", row.pk)


@require_safe
@login_required
def compare(request: HttpRequest) -> HttpResponse:
    """Compare two experiments: the statistics in words, and the answers that got worse first."""
    ids = [parse_uuid(request.GET.get(name, "")) for name in ("a", "b")]
    baseline, candidate = (get_page_experiment(request, experiment_id) for experiment_id in ids)
    context: dict[str, Any] = {"nav": "evals", "baseline": baseline, "candidate": candidate}
    try:
        require_comparable(baseline, candidate)
        comparison = find_comparison(baseline, candidate, request.user)
    except ApiError as error:
        return render(request, "evals/compare.html", {**context, "problem": error.error}, status=409)
    statistics = comparison.statistics or {}
    page: Any = Paginator(statistics.get("items", []), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    context |= {"statistics": statistics, "page": page, "rows": compared_rows(baseline, candidate, page)}
    return render(request, "evals/compare.html", context)


def compared_rows(baseline: Experiment, candidate: Experiment, page: Any) -> list[dict[str, Any]]:
    """Return the items of a page with both answers, whose differing words are marked."""
    ids = [row["itemId"] for row in page]
    results: dict[tuple[UUID, str], ExperimentResult] = {}
    for one in (baseline, candidate):
        of_one = one.results.filter(item__in=ids, attempt=0).select_related("item_version")
        results |= {(one.pk, str(result.item_id)): result for result in of_one}
    rows = []
    for entry in page:
        before, after = (results.get((one.pk, entry["itemId"])) for one in (baseline, candidate))
        if before is None or after is None:
            continue
        old, new = mark_words(text_of_json(before.output), text_of_json(after.output))
        rows.append({"change": entry["change"], "before": before, "after": after, "old": old, "new": new})
        rows[-1]["input"] = text_of_json(before.effective_input)
    return rows
