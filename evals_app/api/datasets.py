"""API views of datasets."""

from __future__ import annotations

from typing import NoReturn

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import require_role
from access_app.role import Role
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import ApiError
from agentcms.wire.json_types import JSONObject
from agents_app.api.idempotency import idempotent
from agents_app.api.lookups import owner_for_new_row
from agents_app.api.required_role import note_required_role
from agents_app.api.strict_requests import checking_names, warning_payloads
from evals_app.api.lookups import get_dataset
from evals_app.api.representation import dataset_body, dataset_version_body, list_body
from evals_app.datasets.changes import lock_dataset
from evals_app.datasets.creation import create_dataset
from evals_app.datasets.deletion import delete_with_experiments
from evals_app.datasets.schema import DatasetBody, parse_dataset, parse_dataset_change
from evals_app.datasets.settings import apply_settings, find_unknown_scorers
from evals_app.models import Dataset

DATASET_ORDERS = {"createdAt": "created_at", "updatedAt": "updated_at", "name": "name"}
GENERATE_MESSAGE = "Generating items is not supported. Add items yourself, import a file or add runs to the dataset."
CLUSTER_MESSAGE = "Clustering failures is not supported. List the failed results of an experiment instead."


class DatasetsView(JSONView):
    """The datasets that the user may see, and the creation of one."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(100)
            order = query.order_by(tuple(DATASET_ORDERS), OrderBy("createdAt"))
            target_type, owner_id = query.text("targetType"), query.text("ownerId")
            archived = query.boolean("archived")
            unknown = query.check_unknown_names("targetIds")
        rows = Dataset.objects.for_user(request.user).filter(archived_at__isnull=not archived)
        if target_type is not None:
            rows = rows.filter(target_type=target_type)
        if owner_id is not None:
            rows = rows.filter(owner_id=owner_id)
        rows = rows.order_by(order.signed(DATASET_ORDERS[order.field]), "pk")
        if targets := dict.fromkeys(query.values.get("targetIds", [])):
            rows = rows.for_any_target(targets)
        page = [dataset_body(row) for row in rows[paging.start : paging.stop]]
        payload = list_body("datasets", page, rows.count(), paging)
        return json_response(payload | warning_payloads(unknown))

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, DatasetBody) as names:
            columns = parse_dataset(body)
        columns["owner_id"] = owner_for_new_row(request.user, columns.get("owner_id"))
        note_required_role(Role.EDITOR, columns["owner_id"])
        # It is not a column, and a new dataset is never archived.
        columns.pop("archived", None)
        # Before the row is created: a strict request with an unknown scorer leaves nothing behind.
        unknown = find_unknown_scorers(Dataset(**columns))
        names.reject_if_strict(unknown)
        dataset = create_dataset(columns)
        return json_response(dataset_body(dataset) | warning_payloads([*names.unknown, *unknown]), 201)


class DatasetView(JSONView):
    """A dataset: read, change and delete."""

    def get(self, request: Request, dataset_id: str) -> HttpResponse:
        return json_response(dataset_body(get_dataset(request, dataset_id)))

    def patch(self, request: Request, dataset_id: str) -> HttpResponse:
        get_dataset(request, dataset_id, Role.EDITOR)
        body = json_object_body(request)
        with checking_names(request, body, DatasetBody) as names:
            columns = parse_dataset_change(body)
        with transaction.atomic():
            # Locked, because `save()` writes all columns: items that are added meanwhile would lose their version.
            lock_dataset(dataset_id)
            # Read again: the dataset may have moved to a team in which the user may not edit.
            dataset = get_dataset(request, dataset_id, Role.EDITOR)
            apply_change(request, dataset, columns)
            unknown = find_unknown_scorers(dataset) if "scorer_keys" in columns else []
            names.reject_if_strict(unknown)
            dataset.save()
        return json_response(dataset_body(dataset) | warning_payloads([*names.unknown, *unknown]))

    def delete(self, request: Request, dataset_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id, Role.PUBLISHER)
        delete_with_experiments(dataset)
        return json_response({"success": True, "message": f"Dataset {dataset_id} deleted"})


def apply_change(request: Request, dataset: Dataset, columns: JSONObject) -> None:
    """Set columns of a locked dataset. Raise ConfigError if current items do not fit its new schemas."""
    if (owner_id := columns.pop("owner_id", dataset.owner_id)) != dataset.owner_id:
        require_role(request.user, Role.PUBLISHER, dataset.owner_id)
        require_role(request.user, Role.PUBLISHER, owner_id or "")
        dataset.owner_id = owner_id or ""
    apply_settings(dataset, columns)


class GenerateItemsView(JSONView):
    """The generation of items by a model, which is not supported."""

    def post(self, request: Request, dataset_id: str) -> NoReturn:
        get_dataset(request, dataset_id, Role.EDITOR)
        raise ApiError(501, GENERATE_MESSAGE, "not_implemented")


class ClusterFailuresView(JSONView):
    """The grouping of failures by a model, which is not supported."""

    def post(self, request: Request) -> NoReturn:
        raise ApiError(501, CLUSTER_MESSAGE, "not_implemented")


class DatasetVersionsView(JSONView):
    """The versions of a dataset, newest first."""

    def get(self, request: Request, dataset_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(20)
            unknown = query.check_unknown_names()
        rows = get_dataset(request, dataset_id).versions.all()
        page = [dataset_version_body(row) for row in rows[paging.start : paging.stop]]
        return json_response(list_body("versions", page, rows.count(), paging) | warning_payloads(unknown))
