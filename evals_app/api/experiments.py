"""API views of experiments."""

from __future__ import annotations

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from access_app.caller import Caller
from access_app.role import Role
from agentcms.api.pagination import Paging
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.wire.unknown_names import UnknownName, find_unknown_below
from agents_app.api.idempotency import idempotent_while
from agents_app.api.required_role import note_required_role
from agents_app.api.strict_requests import check_names, checking_names, read_named_fields, warning_payloads
from evals_app.api.experiment_representation import created_body, experiment_body
from evals_app.api.lookups import get_dataset, get_experiment
from evals_app.api.representation import list_body
from evals_app.datasets.deletion import delete_experiment
from evals_app.experiments.creation import create_experiment
from evals_app.experiments.estimate import find_unlimited_cost
from evals_app.experiments.external import finalize_experiment
from evals_app.experiments.options import ExperimentBody, ExperimentChange, parse_experiment
from evals_app.experiments.stopping import request_cancel
from evals_app.models import Experiment, ExperimentResult
from evals_app.models.experiment import ExperimentQuerySet

EXPERIMENT_ORDERS = {"createdAt": "created_at", "status": "status"}
FILTER_COLUMNS = {
    "targetType": "target_type",
    "targetId": "target_id",
    "experimentSetId": "experiment_set_id",
    "comparisonId": "comparison_id",
    "variantId": "variant_id",
}
Review = ExperimentResult.Review
MAX_SUMMARIES = 1000  # experiments of the summary of reviews


def list_experiments(request: Request, rows: ExperimentQuerySet) -> HttpResponse:
    """Return a page of experiments by the parameters of a request."""
    with QueryParams(request) as query:
        paging: Paging = query.paging(100)
        order = query.order_by(tuple(EXPERIMENT_ORDERS), OrderBy("createdAt"))
        filters = {column: query.text(name) for name, column in FILTER_COLUMNS.items()}
        trial, has_trial = query.integer("trialIndex", 0), "trialIndex" in query.values
        unknown = query.check_unknown_names()
    rows = rows.filter(**{name: value for name, value in filters.items() if value is not None})
    if has_trial:
        rows = rows.filter(trial_index=trial)
    rows = rows.order_by(order.signed(EXPERIMENT_ORDERS[order.field]), "-pk")
    page = [experiment_body(row) for row in rows[paging.start : paging.stop]]
    return json_response(list_body("experiments", page, rows.count(), paging) | warning_payloads(unknown))


class ExperimentsView(JSONView):
    """All experiments that the user may see."""

    def get(self, request: Request) -> HttpResponse:
        return list_experiments(request, Experiment.objects.for_user(request.user))


class AnyExperimentView(JSONView):
    """The deletion of an experiment without its dataset."""

    def delete(self, request: Request, experiment_id: str) -> HttpResponse:
        return delete_and_respond(get_experiment(request, experiment_id, Role.PUBLISHER))


class DatasetExperimentsView(JSONView):
    """The experiments over a dataset, and the creation of one."""

    def get(self, request: Request, dataset_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id)
        return list_experiments(request, Experiment.objects.for_user(request.user).filter(dataset=dataset))

    @idempotent_while(get_dataset)
    def post(self, request: Request, dataset_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id, Role.EDITOR)
        note_required_role(Role.EDITOR, dataset.owner_id)
        body = json_object_body(request)
        inside = find_unknown_below(ExperimentBody, body)
        with checking_names(request, body, ExperimentBody, inside=inside) as names:
            options = parse_experiment(body)
        experiment = create_experiment(dataset, options, request.user)
        warnings = [*names.unknown]
        if unlimited := find_unlimited_cost(experiment, request.user):
            warnings.append(UnknownName("budget.maxCost", "maxCost", unlimited))
        return json_response(created_body(experiment) | warning_payloads(warnings), 201)


class DatasetExperimentView(JSONView):
    """An experiment over a dataset: read, change and delete."""

    def get(self, request: Request, dataset_id: str, experiment_id: str) -> HttpResponse:
        return json_response(experiment_body(get_experiment(request, experiment_id, dataset_id=dataset_id)))

    def patch(self, request: Request, dataset_id: str, experiment_id: str) -> HttpResponse:
        experiment = get_experiment(request, experiment_id, Role.EDITOR, dataset_id)
        fields, unknown = read_named_fields(request, json_object_body(request), ExperimentChange)
        for name, value in fields.items():
            # Null clears a field, whose column cannot be null.
            setattr(experiment, name, ({} if name == "metadata" else "") if value is None else value)
        experiment.updated_at = timezone.now()
        # These columns alone: a worker may store the progress meanwhile.
        experiment.save(update_fields=[*fields, "updated_at"])
        return json_response(experiment_body(experiment) | warning_payloads(unknown))

    def delete(self, request: Request, dataset_id: str, experiment_id: str) -> HttpResponse:
        return delete_and_respond(get_experiment(request, experiment_id, Role.PUBLISHER, dataset_id))


def delete_and_respond(experiment: Experiment) -> HttpResponse:
    experiment_id = experiment.pk
    delete_experiment(experiment)
    return json_response({"success": True, "message": f"Experiment {experiment_id} deleted"})


class CancelExperimentView(JSONView):
    """The cancellation of an experiment."""

    def post(self, request: Request, experiment_id: str) -> HttpResponse:
        experiment = get_experiment(request, experiment_id, Role.EDITOR)
        names = check_names(request, json_object_body(request))
        request_cancel(experiment)
        # Read again: the cancellation was stored by another instance, and may have ended the experiment.
        return json_response(experiment_body(get_experiment(request, experiment_id)) | warning_payloads(names.unknown))


class FinalizeView(JSONView):
    """The end of an experiment that a program outside drives."""

    def post(self, request: Request, dataset_id: str, experiment_id: str) -> HttpResponse:
        experiment = get_experiment(request, experiment_id, Role.EDITOR, dataset_id)
        names = check_names(request, json_object_body(request))
        finalize_experiment(experiment)
        return json_response(experiment_body(experiment) | warning_payloads(names.unknown))


def newest_results(user: Caller) -> QuerySet[ExperimentResult]:
    """Return the results of the newest experiments with results that the user may see. The route has no pages."""
    has_results = Exists(ExperimentResult.objects.filter(experiment=OuterRef("pk")))
    newest = Experiment.objects.for_user(user).filter(has_results).order_by("-pk")
    # Chosen first, or the results of all experiments would be counted.
    return ExperimentResult.objects.filter(experiment__in=newest.values("pk")[:MAX_SUMMARIES])


class ReviewSummaryView(JSONView):
    """The numbers of results by review, for each experiment."""

    def get(self, request: Request) -> HttpResponse:
        by_experiment = newest_results(request.user).values("experiment_id")
        counts = by_experiment.annotate(
            total=Count("pk"),
            needs_review=Count("pk", filter=Q(review=Review.NEEDS_REVIEW)),
            reviewed=Count("pk", filter=Q(review=Review.REVIEWED)),
            complete=Count("pk", filter=Q(review=Review.COMPLETE)),
        )
        bodies = [
            {
                "experimentId": row["experiment_id"],
                "total": row["total"],
                "needsReview": row["needs_review"],
                "reviewed": row["reviewed"],
                "complete": row["complete"],
            }
            for row in counts.order_by("-experiment_id")
        ]
        return json_response({"counts": bodies})
