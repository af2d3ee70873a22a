"""Pages of experiments: progress with results, the review of a result, cancel and retry."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from access_app.caller import Caller
from access_app.permissions import has_role
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.web.dialogs import is_htmx
from agentcms.web.list_state import Chip, ListState, SortChoice, encode_query, search_text
from agentcms.web.template_context import TemplateContext
from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent
from evals_app.compare.interval_plots import build_score_plots
from evals_app.compare.regressions import find_baseline
from evals_app.datasets.values import text_of_json
from evals_app.experiments.estimate import find_unlimited_cost
from evals_app.experiments.figures import count_scorer_errors
from evals_app.experiments.results import REVIEW_COLUMNS, review_mark, store_seen_review
from evals_app.experiments.retrying import retry_failed
from evals_app.experiments.stopping import request_cancel
from evals_app.forms.experiments import REVIEW_CHANGED_MESSAGE, ReviewForm
from evals_app.models import Dataset, Experiment, ExperimentResult
from evals_app.models.experiment import ExperimentQuerySet
from evals_app.views.formats import duration_text, result_duration_text
from evals_app.views.lookups import ROWS_PER_PAGE, find_readable_runs, get_page_dataset, get_page_experiment
from evals_app.views.result_filters import page_of_results

MAX_BASELINES = 100  # in the list of what an experiment can be compared with
SORTS = {"": "Newest", "created": "Oldest", "-failed": "Most failed items"}
SORT_COLUMNS = {"created": ("created_at", "id"), "-failed": ("-failed_count", "-created_at", "-id")}
SORT_BY_SCORER = "-score."  # and the key of the scorer


class ExperimentListState(ListState):
    """The list of experiments: those of a dataset, of an agent, or all."""

    clear_url = "?"

    def __init__(self, params: QueryDict, user: Caller) -> None:
        self.params, self.user = params, user
        self.dataset_id, self.agent_id = (params.get(name, "").replace("\0", "") for name in ("dataset", "agent"))
        self.search = search_text(params)
        sort = params.get("sort", "").replace("\0", "")
        self.scorer_key = sort.removeprefix(SORT_BY_SCORER) if sort.startswith(SORT_BY_SCORER) else ""
        self.sort = sort if sort in SORTS or self.scorer_key else ""

    def select(self, experiments: ExperimentQuerySet) -> ExperimentQuerySet:
        """Return the experiments of the list, in its order."""
        if self.scorer_key:
            experiments = experiments.by_mean_of(self.scorer_key)
        elif self.sort:
            experiments = experiments.order_by(*SORT_COLUMNS[self.sort])
        if self.search:
            experiments = experiments.with_text(self.search)
        if self.dataset_id:
            experiments = experiments.filter(dataset=self.dataset_id)
        if self.agent_id:
            experiments = experiments.filter(target_type=Experiment.Target.AGENT, target_id=self.agent_id)
        return experiments

    @cached_property
    def chips(self) -> list[Chip]:
        chips = []
        if self.dataset_id:
            named = Dataset.objects.for_user(self.user).filter(pk=self.dataset_id).first()
            chips.append(Chip("Dataset", named.name if named else self.dataset_id, self.url(dataset=None)))
        if self.agent_id:
            names = Agent.objects.for_user(self.user).names_of([self.agent_id])
            chips.append(Chip("Agent", names[self.agent_id], self.url(agent=None)))
        return chips

    @property
    def is_filtered(self) -> bool:
        return bool(self.chips or self.search)

    def sort_choices(self, experiments: Iterable[Experiment]) -> list[SortChoice]:
        """Return the orders of the list, also by each scorer of the experiments on the page."""
        labels = dict(SORTS)
        for row in experiments:
            for scorer_key, figures in row.summary.get("scorers", {}).items():
                if figures["mean"] is not None:
                    labels[f"{SORT_BY_SCORER}{scorer_key}"] = f"Score: {figures['name']}"
        if self.scorer_key:
            labels.setdefault(self.sort, f"Score: {self.scorer_key}")
        return [SortChoice(label, self.url(sort=key or None), key == self.sort) for key, label in labels.items()]


@require_safe
@login_required
def experiment_list(request: HttpRequest) -> HttpResponse:
    """List the experiments over all datasets. `dataset` and `agent` select those of one."""
    listing = ExperimentListState(request.GET, request.user)
    experiments = Experiment.objects.for_user(request.user).with_target_names(request.user).select_related("dataset")
    page: Page[Experiment] = Paginator(listing.select(experiments), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    sorts = listing.sort_choices(page.object_list)
    context = {"nav": "evals", "page": page, "listing": listing, "sort_choices": sorts}
    return render(request, "evals/experiments.html", {**context, "sorted_by": next(s for s in sorts if s.is_current)})


@require_safe
@login_required
def experiment(request: HttpRequest, experiment_id: UUID) -> HttpResponse:
    """Show the progress of an experiment with its results. While it runs, the page asks for itself again."""
    row = get_page_experiment(request, experiment_id)
    baseline = find_baseline(row) if row.is_finished else None
    only = request.GET.get("only", "")
    tag = request.GET.get("tag", "").replace("\0", "")  # PostgreSQL refuses a NUL
    page = page_of_results(row, only, tag, baseline, request.GET.get("page"))
    may_edit = has_role(request.user, Role.EDITOR, row.dataset.owner_id)
    context = {
        "nav": "evals",
        "experiment": row,
        "page": page,
        # While it runs the page replaces itself, and a review that is being written would be lost.
        "rows": [result_row(result, row.is_finished and may_edit) for result in page],
        "readable_runs": find_readable_runs(request.user, page),
        **filter_context(only, tag, page.number),
        "unlimited_cost": find_unlimited_cost(row, request.user),
        "baseline": baseline,
        **score_context(row),
        **{name: duration_text(row.summary.get(f"{name}Ms")) for name in ("median", "p95")},
        "others": list_baselines(request, row, baseline) if row.is_finished else [],
        "may_edit": may_edit,
        "may_retry": may_edit and row.is_finished and not row.is_external,
        **unfinished_work(row),
    }
    return render(request, "evals/experiment.html", context)


def score_context(row: Experiment) -> TemplateContext:
    """Return the figures of each scorer, with a plot of its mean."""
    scorers = [end_interval_with_scores(figures) for figures in row.scorer_figures]
    plots = build_score_plots(scorers)
    return {"scorers": [{**figures, "plot": plot} for figures, plot in zip(scorers, plots, strict=True)]}


def end_interval_with_scores(figures: JSONObject) -> JSONObject:
    """Return figures of a scorer whose interval ends at 0 and 1 if all scores are there.

    The interval of a mean of few scores may be wider than the scores can be.
    """
    scores = [figures[name] for name in ("mean", "min", "max") if figures.get(name) is not None]
    if not scores or min(scores) < 0 or max(scores) > 1:
        return figures
    return {**figures, "low": max(figures["low"], 0.0), "high": min(figures["high"], 1.0)}


def filter_context(only: str, tag: str, page_number: int) -> TemplateContext:
    """Return the filters of the results, and the queries of this page without and with its number."""
    query = encode_query(only=only, tag=tag)
    page_query = encode_query(only=only, tag=tag, page=page_number if page_number > 1 else "")
    return {"only": only, "tag": tag, "query": query, "page_query": page_query}


def unfinished_work(row: Experiment) -> TemplateContext:
    """Return how much of an experiment has no result or no score, and what the button for another attempt says."""
    return {
        "missing_count": max(0, row.total_items - row.done_count),
        "scorer_errors": count_scorer_errors(row),
        "retry_label": "Retry failed items" if row.failed_count else "Retry failed scores",
    }


def list_baselines(request: HttpRequest, row: Experiment, baseline: Experiment | None) -> list[Experiment]:
    """Return the newest experiments to compare with, and the one before this, which may be older."""
    others = other_experiments(row).with_target_names(request.user)
    newest = list(others[:MAX_BASELINES])
    if baseline is not None and baseline not in newest:
        newest += others.filter(pk=baseline.pk)
    return newest


# The dataset is visible already, and so are all experiments over it.
def other_experiments(row: Experiment) -> ExperimentQuerySet:
    """Return the experiments with which this one can be compared."""
    return (
        Experiment.objects.filter(dataset=row.dataset_id).exclude(pk=row.pk).exclude(status__in=Experiment.UNFINISHED)
    )


def result_row(result: ExperimentResult, may_review: bool, form: ReviewForm | None = None) -> TemplateContext:
    """Return the values of a row, with a form for its review: `form` if what was entered is invalid."""
    if may_review and form is None:
        initial = {name: getattr(result, name) for name in REVIEW_COLUMNS} | {"seen": review_mark(result)}
        form = ReviewForm(initial=initial, auto_id=f"{result.pk}_%s")
    return {
        "result": result,
        "duration": result_duration_text(result),
        "input": text_of_json(result.effective_input),
        "output": text_of_json(result.output),
        "ground_truth": text_of_json(result.effective_ground_truth),
        "error": (result.error or {}).get("message", ""),
        "scores": [{**entry, "details_text": text_of_json(entry.get("details"))} for entry in result.scores],
        "tool_mock_report": text_of_json(result.tool_mock_report),
        "form": form,
    }


@require_POST
@login_required
def review(request: HttpRequest, experiment_id: UUID, result_id: UUID) -> HttpResponse:
    """Store the review of a result: its state, tags and comment. What is not stored stays in the form, with errors."""
    row = get_page_experiment(request, experiment_id)
    get_page_dataset(request, row.dataset_id, Role.EDITOR)
    result = row.results.select_related("item_version").filter(pk=result_id).first()
    if result is None:
        raise Http404
    form = ReviewForm(request.POST, auto_id=f"{result.pk}_%s")
    if form.is_valid() and not store_seen_review(result, form.columns, form.cleaned_data["seen"]):
        form.mark = review_mark(result)
        form.ask_to_replace(REVIEW_CHANGED_MESSAGE, "review")
    # The filters and the number of the page, to which the redirect returns.
    query = request.POST.get("query", "")[:200]
    if form.errors:
        context = {"nav": "evals", "experiment": row, "query": query, "row": result_row(result, True, form)}
        context["readable_runs"] = find_readable_runs(request.user, [result])
        template = "evals/_result.html" if is_htmx(request) else "evals/review.html"
        return render(request, template, context, status=422)
    if is_htmx(request):
        return render_reviewed_row(request, row, result, query)
    return redirect(f"{reverse('evals:experiment', args=[row.pk])}?{query}#result-{result.pk}")


def render_reviewed_row(request: HttpRequest, row: Experiment, result: ExperimentResult, query: str) -> HttpResponse:
    """Return the row of a result after its review."""
    context: TemplateContext = {"experiment": row, "query": query, "row": result_row(result, True)}
    context["readable_runs"] = find_readable_runs(request.user, [result])
    response = render(request, "evals/_result.html", context)
    return trigger_client_event(response, "review-saved", {"target": "body", "message": "Review saved."})


@require_POST
@login_required
def cancel(request: HttpRequest, experiment_id: UUID) -> HttpResponse:
    """Cancel an experiment. Its results stay."""
    row = get_page_experiment(request, experiment_id)
    get_page_dataset(request, row.dataset_id, Role.EDITOR)
    request_cancel(row)
    messages.success(request, "No new item starts. Results stay.")
    return redirect("evals:experiment", row.pk)


@require_POST
@login_required
def retry(request: HttpRequest, experiment_id: UUID) -> HttpResponse:
    """Run the items again that failed or were left out, and score answers again whose scorers failed."""
    row = get_page_experiment(request, experiment_id)
    get_page_dataset(request, row.dataset_id, Role.EDITOR)
    try:
        count = retry_failed(row, request.user)
    except ApiError as error:
        messages.error(request, error.error)
    else:
        messages.success(request, f"{count:,} {'item runs or is' if count == 1 else 'items run or are'} scored again.")
    return redirect("evals:experiment", row.pk)
