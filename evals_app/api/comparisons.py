"""The API view that compares two experiments."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpResponse
from pydantic import BaseModel, Field
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agents_app.configuration.schema import WIRE_CONFIG, JSONObject, validate_fields
from evals_app.api.experiments import get_experiment
from evals_app.api.lookups import get_dataset
from evals_app.compare.jobs import find_comparison
from evals_app.compare.repeats import mean_scores
from evals_app.models import Comparison, Experiment, ExperimentResult

ExperimentId = Annotated[str, Field(max_length=64)]


class CompareBody(BaseModel):
    """The two experiments that are compared."""

    model_config = WIRE_CONFIG

    experiment_id_a: Annotated[ExperimentId, Field(alias="experimentIdA")]
    experiment_id_b: Annotated[ExperimentId, Field(alias="experimentIdB")]


class CompareView(JSONView):
    """Two experiments over a dataset, paired by item, with statistics once a job has computed them."""

    def post(self, request: Request, dataset_id: str) -> HttpResponse:
        get_dataset(request, dataset_id)
        fields = validate_fields(CompareBody, json_object_body(request))
        baseline, candidate = (
            get_experiment(request, fields[name], dataset_id=dataset_id)
            for name in ("experiment_id_a", "experiment_id_b")
        )
        comparison = find_comparison(baseline, candidate, request.user)
        return json_response(comparison_body(comparison, baseline, candidate))


def comparison_body(comparison: Comparison, baseline: Experiment, candidate: Experiment) -> JSONObject:
    statistics = comparison.statistics
    order = [row["itemId"] for row in statistics["items"]] if statistics else []
    return {
        "baselineId": baseline.pk,
        "state": comparison.state,
        "statistics": {name: value for name, value in statistics.items() if name != "items"} if statistics else None,
        "items": compared_items(baseline, candidate, order),
    }


ANSWER_COLUMNS = ("item_id", "item_version__input", "item_version__ground_truth", "output", "scores")


def compared_items(baseline: Experiment, candidate: Experiment, order: list[str]) -> list[JSONObject]:
    """Return the items of two experiments with both answers, in this order and then the others.

    Of an item that was answered several times, return the first answer and the means of the scores.
    """
    rows: dict[str, JSONObject] = {}
    for experiment in (baseline, candidate):
        repeats: dict[UUID, list[list[JSONObject]]] = {}
        results = experiment.results.filter(state=ExperimentResult.State.DONE).order_by("attempt")
        for item_id, given, truth, output, scores in results.values_list(*ANSWER_COLUMNS):
            row = rows.setdefault(str(item_id), empty_row(item_id, given, truth, baseline, candidate))
            attempts = repeats.setdefault(item_id, [])
            if not attempts:
                row["results"][str(experiment.pk)] = {"output": output}
            attempts.append(scores)
        for item_id, attempts in repeats.items():
            means = {entry["scorerId"]: entry["score"] for entry in mean_scores(attempts)}
            rows[str(item_id)]["results"][str(experiment.pk)]["scores"] = means
    position = {item_id: number for number, item_id in enumerate(order)}
    return sorted(rows.values(), key=lambda row: position.get(str(row["itemId"]), len(position)))


def empty_row(item_id: UUID, given: Any, truth: Any, baseline: Experiment, candidate: Experiment) -> JSONObject:
    results = {str(baseline.pk): None, str(candidate.pk): None}
    return {"itemId": item_id, "input": given, "groundTruth": truth, "results": results}
