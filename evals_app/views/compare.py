"""The page that compares two experiments."""

from __future__ import annotations

from itertools import chain
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from access_app.caller import Caller
from agentcms.errors import ApiError
from agentcms.ids import parse_uuid
from agentcms.web.list_state import encode_query
from agentcms.web.template_context import TemplateContext
from agentcms.wire.json_types import JSONObject
from evals_app.compare.comparison_in_words import find_differing_versions
from evals_app.compare.interval_plots import build_interval_plots
from evals_app.compare.jobs import find_comparison, require_comparable
from evals_app.compare.repeats import mean_scores
from evals_app.compare.word_differences import excerpt_around_marks, mark_answers
from evals_app.datasets.values import text_of_json
from evals_app.models import Comparison, Experiment, ExperimentResult
from evals_app.views.formats import MINUS, interval_text, result_duration_text, score_difference_text
from evals_app.views.lookups import find_readable_runs, get_page_experiment
from evals_app.views.result_filters import page_of_items
from runs_app.models import RunEvent

STATISTICS_FAILED = "The statistics could not be computed. The server log has the details."
MAX_UNPAIRED = 100  # items that are listed
MEASURES = [f"{side}{figure}" for figure in ("Mean", "Median", "P95") for side in ("baseline", "candidate")]
MEASURES += ["difference", "low", "high"]


@require_safe
@login_required
def compare(request: HttpRequest) -> HttpResponse:
    """Compare two experiments: the statistics in words, and the answers that got worse first.

    `a` is the baseline, unless `order=time` asks for the older one.
    """
    pair = get_experiment_pair(request)
    # The page of an experiment offers others of any age, and the older one is what was there before.
    if request.GET.get("order") == "time":
        pair.sort(key=lambda experiment: experiment.created_at)
    baseline, candidate = pair
    context: TemplateContext = {"nav": "evals", "baseline": baseline, "candidate": candidate}
    try:
        require_comparable(baseline, candidate)
        comparison = find_comparison(baseline, candidate, request.user)
    except ApiError as error:
        return render(request, "evals/compare.html", {**context, "problem": error.error}, status=409)
    query = encode_query(a=str(baseline.pk), b=str(candidate.pk))
    if comparison.state == Comparison.State.FAILED:
        again_url = f"{reverse('evals:compare_again')}?{query}"
        return render(request, "evals/compare.html", {**context, "problem": STATISTICS_FAILED, "again_url": again_url})
    statistics = comparison.statistics or {}
    only = request.GET.get("only", "")
    page = page_of_items(statistics.get("items", []), only, request.GET.get("page"))
    rows = compared_rows(request.user, baseline, candidate, page)
    context |= {"statistics": statistics, "page": page, "rows": rows, "only": only}
    context |= {"query": f"{query}&{encode_query(only=only)}" if only else query, "unfiltered": query}
    context |= {"unpaired": [unpaired_items(*side) for side in sides_of(baseline, candidate, statistics)]}
    context |= {"scorers": compared_scorers(pair, statistics), "measures": compared_measures(statistics)}
    return render(request, "evals/compare.html", context)


@require_POST
@login_required
def compare_again(request: HttpRequest) -> HttpResponse:
    """Compute the statistics of two experiments again after a failure."""
    baseline, candidate = get_experiment_pair(request)
    try:
        find_comparison(baseline, candidate, request.user, again=True)
    except ApiError as error:
        messages.error(request, error.error)
    return redirect(f"{reverse('evals:compare')}?a={baseline.pk}&b={candidate.pk}")


def get_experiment_pair(request: HttpRequest) -> list[Experiment]:
    """Return the experiments `a` and `b` of the query. Raise Http404 for one that the user may not see."""
    ids = [parse_uuid(request.GET.get(name, "")) for name in ("a", "b")]
    return [get_page_experiment(request, experiment_id) for experiment_id in ids]


def compared_scorers(pair: list[Experiment], statistics: JSONObject) -> list[TemplateContext]:
    """Return the name, the statistics and the plot of each scorer that both experiments have."""
    baseline, candidate = pair
    names = (candidate.summary or {}).get("scorers", {})
    versions = find_differing_versions(baseline, candidate)
    scorers = statistics.get("scorers", {})
    plots = build_interval_plots([*scorers.values()])
    return [
        {
            "name": names.get(key, {}).get("name") or key,
            "entry": entry,
            "versions": versions.get(key),
            "difference": score_difference_text(entry["difference"]),
            "range": interval_text(entry["low"], entry["high"]),
            "plot": plot,
        }
        for (key, entry), plot in zip(scorers.items(), plots, strict=True)
    ]


def sides_of(
    baseline: Experiment, candidate: Experiment, statistics: JSONObject
) -> list[tuple[Experiment, list[str]]]:
    """Return both experiments with the IDs of the items that only they have, without those that have none."""
    sides = ((baseline, statistics.get("onlyBaseline")), (candidate, statistics.get("onlyCandidate")))
    return [(experiment, ids) for experiment, ids in sides if ids]


def unpaired_items(experiment: Experiment, ids: list[str]) -> TemplateContext:
    """Return the inputs of items that only one experiment has. They are in no figure of the comparison."""
    results = experiment.results.filter(item__in=map(UUID, ids[:MAX_UNPAIRED])).select_related("item_version")
    inputs = {result.item_id: text_of_json(result.effective_input) for result in results.order_by("item_id")}
    return {"experiment": experiment, "count": len(ids), "inputs": [*inputs.values()]}


def compared_measures(statistics: JSONObject) -> list[TemplateContext]:
    """Return the duration and the cost of an item before and after, in words. What is not known is left out."""
    measures = []
    for label, name, words in (("Duration", "durationMs", seconds_text), ("Cost", "cost", cost_text)):
        entry = statistics.get(name) or {}
        if not entry.get("pairs"):
            continue
        texts = {key: words(entry[key]) for key in MEASURES if entry.get(key) is not None}
        measures.append({"label": label, "entry": entry, **texts})
    return measures


def seconds_text(milliseconds: float) -> str:
    """Return a duration, or a difference of two, in seconds."""
    return f"{MINUS if milliseconds < 0 else ''}{abs(milliseconds) / 1000:.2f} s"


def cost_text(dollars: float) -> str:
    return f"{MINUS if dollars < 0 else ''}${abs(dollars):.6f}"


def compared_rows(user: Caller, baseline: Experiment, candidate: Experiment, page: Page[Any]) -> list[TemplateContext]:
    """Return the items of a page with both answers, whose differing words are marked if they have others in common."""
    ids = [row["itemId"] for row in page]
    attempts: dict[tuple[UUID, str], list[ExperimentResult]] = {}
    for one in (baseline, candidate):
        for result in one.results.filter(item__in=ids).select_related("item_version").order_by("attempt"):
            attempts.setdefault((one.pk, str(result.item_id)), []).append(result)
    # Only of the first answers: the others are listed without what led to them.
    calls = calls_by_run([results[0].run_id for results in attempts.values()])
    readable = find_readable_runs(user, chain.from_iterable(attempts.values()))
    rows = []
    for entry in page:
        pair = [attempts.get((one.pk, entry["itemId"]), []) for one in (baseline, candidate)]
        if not all(pair):
            continue
        before = pair[0][0]
        sides = compared_sides(pair, calls)
        texts = {"input": text_of_json(before.effective_input), "truth": text_of_json(before.effective_ground_truth)}
        change = compared_change(entry["change"], pair)
        rows.append({"change": change, "sides": sides, "readable_runs": readable, **texts})
    return rows


def compared_change(change: float, pair: list[list[ExperimentResult]]) -> str:
    """Return the difference of the scores of an item, or on which side it failed, which no score can say."""
    before, after = (any(result.error is not None for result in results) for results in pair)
    if before or after:
        return "Failed in both" if before and after else "Failed after" if after else "Failed before"
    return score_difference_text(change)


def compared_sides(pair: list[list[ExperimentResult]], calls: dict[UUID | None, list[str]]) -> list[TemplateContext]:
    """Return the first answers of two experiments to an item, with their differing words marked."""
    before, after = (text_of_json(results[0].output) for results in pair)
    return [
        {
            "label": label,
            **describe_attempts(results),
            "spans": spans,
            "excerpt": excerpt_around_marks(spans),
            "calls": calls.get(results[0].run_id, []),
        }
        for label, results, spans in zip(("Before", "After"), pair, mark_answers(before, after), strict=True)
    ]


def describe_attempts(results: list[ExperimentResult]) -> TemplateContext:
    """Return the first answer of an experiment to an item, the others, and the means of their scores."""
    return {
        "result": results[0],
        "others": results[1:],
        "scores": mean_scores(one.scores for one in results),
        "duration": result_duration_text(results[0]),
    }


def calls_by_run(run_ids: list[UUID | None]) -> dict[UUID | None, list[str]]:
    """Return the names of the tools that runs called, in order."""
    events = RunEvent.objects.filter(run__in=[key for key in run_ids if key], data__type="tool-call")
    calls: dict[UUID | None, list[str]] = {}
    # The database takes the name out of the event: the arguments of a call may be large.
    for run_id, name in events.order_by("number").values_list("run_id", "data__payload__toolName"):
        calls.setdefault(run_id, []).append(str(name))
    return calls
