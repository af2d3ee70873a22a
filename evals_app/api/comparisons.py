"""The API view that compares two experiments."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.http import HttpResponse
from pydantic import BaseModel, Field
from rest_framework.request import Request

from agentcms.api.pagination import PageSize, Paging, in_parts, text_length
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import MAX_PER_PAGE, QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.wire.json_types import JSONObject
from agents_app.api.strict_requests import checking_names, warning_payloads
from agents_app.configuration.schema import WIRE_CONFIG, validate_fields
from evals_app.api.lookups import get_dataset, get_experiment
from evals_app.api.representation import list_body
from evals_app.compare.comparison_in_words import find_differing_versions
from evals_app.compare.jobs import find_comparison
from evals_app.compare.repeats import mean_scores
from evals_app.models import Comparison, Experiment, ExperimentResult

ExperimentId = Annotated[str, Field(max_length=64)]


class CompareBody(BaseModel):
    """The two experiments that are compared."""

    model_config = WIRE_CONFIG

    experiment_id_a: Annotated[ExperimentId, Field(alias="experimentIdA")]
    experiment_id_b: Annotated[ExperimentId, Field(alias="experimentIdB")]
    again: bool | None = None


class CompareExperimentsView(JSONView):
    """Two experiments over a dataset, paired by item, with statistics once a job has computed them."""

    def post(self, request: Request, dataset_id: str) -> HttpResponse:
        get_dataset(request, dataset_id)
        with QueryParams(request) as query:
            paging = query.paging(MAX_PER_PAGE)  # the published client cannot ask for a second page
        body = json_object_body(request)
        with checking_names(request, body, CompareBody, parameters=("page", "perPage")) as names:
            fields = validate_fields(CompareBody, body)
        baseline, candidate = (
            get_experiment(request, fields[name], dataset_id=dataset_id)
            for name in ("experiment_id_a", "experiment_id_b")
        )
        comparison = find_comparison(baseline, candidate, request.user, again=bool(fields.get("again")))
        payload = comparison_body(comparison, baseline, candidate, paging)
        return json_response(payload | warning_payloads(names.unknown))


def comparison_body(comparison: Comparison, baseline: Experiment, candidate: Experiment, paging: Paging) -> JSONObject:
    statistics = comparison.statistics
    order = [row["itemId"] for row in statistics["items"]] if statistics else []
    item_ids = ordered_items(baseline, candidate, order)
    items = compared_items(baseline, candidate, item_ids[paging.start : paging.stop])
    return {
        "baselineId": baseline.pk,
        "state": comparison.state,
        "differingScorerVersions": find_differing_versions(baseline, candidate),
        "statistics": {name: value for name, value in statistics.items() if name != "items"} if statistics else None,
        **list_body("items", items, len(item_ids), paging),
    }


def ordered_items(baseline: Experiment, candidate: Experiment, order: list[str]) -> list[UUID]:
    """Return the items that one of two experiments answered, in this order and then the others by ID."""
    done = ExperimentResult.objects.filter(state=ExperimentResult.State.DONE).order_by()
    item_ids = done.filter(experiment__in=[baseline, candidate]).values_list("item_id", flat=True).distinct()
    position = {item_id: number for number, item_id in enumerate(order)}
    return sorted(item_ids, key=lambda item_id: (position.get(str(item_id), len(position)), item_id))


def compared_items(baseline: Experiment, candidate: Experiment, item_ids: list[UUID]) -> list[JSONObject]:
    """Return items with the answers of two experiments. They are read in parts, up to the size of a page."""
    rows: list[JSONObject] = []
    size = PageSize()
    for part in in_parts(item_ids):
        compared = compared_part(baseline, candidate, part)
        size.add(text_length(compared))
        rows += compared
    return rows


ITEM_COLUMNS = ("item_version__input", "item_version__ground_truth")
ANSWER_COLUMNS = ("experiment_id", "item_id", "state", *ITEM_COLUMNS, "output", "scores", "is_submitted")


def compared_part(baseline: Experiment, candidate: Experiment, item_ids: list[UUID]) -> list[JSONObject]:
    """Return items with both answers. Of several answers to an item: the first one, and the means of the scores.

    Answers that were submitted from outside are marked.
    """
    rows: dict[UUID, JSONObject] = {}
    repeats: dict[tuple[UUID, str], list[list[JSONObject]]] = {}
    results = ExperimentResult.objects.filter(experiment__in=[baseline, candidate], item_id__in=item_ids)
    # The baseline first: of an item that both have, the row shows the input of its version.
    ordered = sorted(results.order_by("attempt").values_list(*ANSWER_COLUMNS), key=lambda row: row[0] != baseline.pk)
    for experiment_id, item_id, state, given, truth, output, scores, is_submitted in ordered:
        # Not in the query: SQLite would search all results of a state instead of these items.
        if state != ExperimentResult.State.DONE:
            continue
        row = rows.setdefault(item_id, empty_row(item_id, given, truth, baseline, candidate))
        side = str(experiment_id)
        mark = {"submitted": True} if is_submitted else {}
        row["results"][side] = row["results"][side] or {"output": output, **mark}
        repeats.setdefault((item_id, side), []).append(scores)
    for (item_id, side), attempts in repeats.items():
        means = {entry["scorerId"]: entry["score"] for entry in mean_scores(attempts)}
        rows[item_id]["results"][side]["scores"] = means
    return [rows[item_id] for item_id in item_ids if item_id in rows]


def empty_row(item_id: UUID, given: object, truth: object, baseline: Experiment, candidate: Experiment) -> JSONObject:
    results = {str(baseline.pk): None, str(candidate.pk): None}
    return {"itemId": item_id, "input": given, "groundTruth": truth, "results": results}
