"""API views of the results of experiments."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.pagination import read_page
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import ApiError, Unauthorized
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.api.idempotency import idempotent_by_reference, referring_response
from agents_app.api.strict_requests import read_named_fields, warning_payloads
from evals_app.api.experiment_representation import result_body, result_score_body
from evals_app.api.lookups import get_experiment
from evals_app.api.representation import list_body
from evals_app.experiments.ending import experiment_not_found
from evals_app.experiments.external import require_open, run_item, submit_result
from evals_app.experiments.options import ItemRun, ResultChange, SubmittedResult
from evals_app.experiments.results import ReviewColumns, store_review
from evals_app.models import Experiment, ExperimentResult
from memory_app.realms import refresh_credentials
from runs_app.events.stream_access import StreamAccess
from runs_app.events.streams import StreamSlot

RESULT_ORDERS = {"startedAt": "started_at", "createdAt": "created_at"}


def respond_with_result(request: Request, reference: JSONMapping, dataset_id: str, experiment_id: str) -> HttpResponse:
    """Return the result that a request has submitted. Raise ApiError."""
    experiment = get_experiment(request, experiment_id, Role.EDITOR, dataset_id)
    return json_response(result_body(get_result(experiment, reference["result"])) | reference["more"])


class ResultsView(JSONView):
    """The results of an experiment, and the submission of one by a program outside."""

    def get(self, request: Request, dataset_id: str, experiment_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(100)
            order = query.order_by(tuple(RESULT_ORDERS), OrderBy("startedAt", "ASC"))
            unknown = query.check_unknown_names("tags")
        experiment = get_experiment(request, experiment_id, dataset_id=dataset_id)
        rows = experiment.results.select_related("item_version")
        rows = rows.order_by(order.signed(RESULT_ORDERS[order.field]), "pk")
        if tags := set(query.values.get("tags", [])):
            rows = rows.with_tags(tags)
        payload = list_body("results", read_page(rows, paging, result_body), rows.count(), paging)
        return json_response(payload | warning_payloads(unknown))

    @idempotent_by_reference(respond_with_result)
    def post(self, request: Request, dataset_id: str, experiment_id: str) -> HttpResponse:
        experiment = get_experiment(request, experiment_id, Role.EDITOR, dataset_id)
        fields, unknown = read_named_fields(request, json_object_body(request), SubmittedResult)
        result = submit_result(experiment, fields, request.user)
        more = warning_payloads(unknown)
        return referring_response(result_body(result) | more, {"result": str(result.pk), "more": more}, 201)


def get_result(experiment: Experiment, result_id: str) -> ExperimentResult:
    """Return a result of an experiment. Raise ApiError."""
    result_uuid = parse_uuid(result_id)
    rows = experiment.results.select_related("item_version")
    result: ExperimentResult | None = rows.filter(pk=result_uuid).first() if result_uuid else None
    if result is None:
        raise ApiError(404, f"Result with id {result_id} not found", "EXPERIMENT_RESULT_NOT_FOUND")
    return result


class ResultView(JSONView):
    """The review of a result by people."""

    def patch(self, request: Request, dataset_id: str, experiment_id: str, result_id: str) -> HttpResponse:
        experiment = get_experiment(request, experiment_id, Role.EDITOR, dataset_id)
        result = get_result(experiment, result_id)
        fields, unknown = read_named_fields(request, json_object_body(request), ResultChange)
        store_review(result, review_columns(fields))
        return json_response(result_body(result) | warning_payloads(unknown))


def review_columns(fields: JSONObject) -> ReviewColumns:
    """Return the columns of the fields of a `ResultChange`. Null empties one."""
    columns: ReviewColumns = {}
    if "status" in fields:
        columns["review"] = fields["status"] or ""
    if "tags" in fields:
        columns["tags"] = fields["tags"] or []
    if "comment" in fields:
        columns["comment"] = fields["comment"] or ""
    return columns


class ItemRunView(JSONView):
    """The run of one item of an experiment that a program outside drives."""

    def post(self, request: Request, dataset_id: str, experiment_id: str, item_id: str) -> HttpResponse:
        experiment = get_experiment(request, experiment_id, Role.EDITOR, dataset_id)
        options, unknown = read_named_fields(request, json_object_body(request), ItemRun)
        require_open(experiment)
        if not experiment.target_id:
            message = "The experiment has no target. Submit its results instead."
            raise ApiError(409, message, "EXPERIMENT_TARGET_NOT_FOUND")
        is_visible = Experiment.objects.for_user(request.user).filter(pk=experiment.pk).exists
        access = StreamAccess(request.user, is_visible)
        with StreamSlot(request.user):  # the run of the item blocks a thread
            result = run_item(experiment, item_id, options, request.user)
        if access.has_ended():  # while the item ran
            raise experiment_not_found(experiment.pk) if refresh_credentials(request.user) else Unauthorized
        scores = [result_score_body(entry) for entry in result.scores]
        return json_response({"result": result_body(result), "scores": scores} | warning_payloads(unknown))
