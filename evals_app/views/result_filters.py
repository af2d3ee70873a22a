"""Filters of the results of an experiment and of the items of a comparison."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.paginator import Page, Paginator

from agentcms.wire.json_types import JSONObject
from evals_app.compare.regressions import find_worse_results
from evals_app.experiments.figures import find_unscored
from evals_app.models import Experiment, ExperimentResult
from evals_app.models.experiment import ExperimentResultQuerySet
from evals_app.views.lookups import ROWS_PER_PAGE

ONLY_FAILED, ONLY_WORSE, ONLY_BETTER, ONLY_UNREVIEWED = "failed", "worse", "better", "needs-review"


def page_of_results(
    row: Experiment, only: str, tag: str, baseline: Experiment | None, number: str | None
) -> Page[ExperimentResult]:
    """Return a page of the results that the filters leave, in their order."""
    results = row.results.select_related("item_version").order_by("item_id", "attempt")
    if tag:
        results = results.with_tags([tag])
    if only == ONLY_WORSE:
        worse = find_worse_results(baseline, row) if baseline is not None else []
        chosen = {*results.order_by().values_list("pk", flat=True)} if tag else {*worse}
        return page_in_order(results, [key for key in worse if key in chosen], number)
    if only == ONLY_FAILED:
        failed = results.filter(error__isnull=False)
        # Scores are JSON, so that Python finds the failed ones; their keys then select the rows.
        if unscored := find_unscored(row):
            chosen = {*unscored, *failed.order_by().values_list("pk", flat=True)}
            keys = results.values_list("pk", flat=True)
            return page_in_order(results, [key for key in keys if key in chosen], number)
        results = failed
    elif only == ONLY_UNREVIEWED:
        results = results.filter(review=ExperimentResult.Review.NEEDS_REVIEW)
    return Paginator(results, ROWS_PER_PAGE).get_page(number)


def page_in_order(results: ExperimentResultQuerySet, keys: list[UUID], number: str | None) -> Page[ExperimentResult]:
    """Return a page of the results with these keys, in their order. Only those of the page are loaded."""
    page: Page[Any] = Paginator(keys, ROWS_PER_PAGE).get_page(number)  # of keys, which become results
    rows = results.in_bulk([*page])
    page.object_list = [rows[key] for key in page if key in rows]
    return page


def page_of_items(items: list[JSONObject], only: str, number: str | None) -> Page[Any]:
    """Return a page of the items that got worse or better, the most first, or of all of them."""
    if only == ONLY_WORSE:
        items = [item for item in items if item["change"] < 0]
    elif only == ONLY_BETTER:
        items = [item for item in reversed(items) if item["change"] > 0]
    return Paginator(items, ROWS_PER_PAGE).get_page(number)
