"""API views of the items of a dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.pagination import read_page
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import MAX_PER_PAGE, OrderBy, QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.unknown_names import MAX_UNKNOWN_NAMES, UnknownName, find_unknown_names, wire_names
from agents_app.api.idempotency import idempotent_by_reference, referring_response
from agents_app.api.strict_requests import checking_names, warning_payloads
from evals_app.api.lookups import get_dataset, get_item, get_item_versions, reject_later_version
from evals_app.api.representation import item_body, item_history_body, list_body
from evals_app.datasets.changes import add_items, change_item, delete_items, item_not_found
from evals_app.datasets.purging import purge_item
from evals_app.datasets.schema import ItemBody, parse_item, parse_item_change, parse_items
from evals_app.datasets.unknown_in_item import unknown_in_item
from evals_app.models import Dataset, ItemVersion

MAX_BATCH_ITEMS = 5000
ITEM_ORDERS = {"createdAt": "item_id", "updatedAt": "created_at"}  # IDs of items grow with the time


def respond_with_item(request: Request, reference: JSONMapping, dataset_id: str) -> HttpResponse:
    """Return the item that a request has added. Raise ApiError."""
    (version,) = get_item_versions(get_dataset(request, dataset_id, Role.EDITOR), reference["versions"])
    return json_response(item_body(version) | reference["more"])


class ItemsView(JSONView):
    """The items of a dataset at its current or an earlier version, and the addition of one."""

    def get(self, request: Request, dataset_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(100)
            version, search = query.integer("version", 0), query.text("search")
            has_version = "version" in query.values
            order = query.order_by(tuple(ITEM_ORDERS), OrderBy("createdAt", "ASC"))
            unknown = query.check_unknown_names()
        dataset = get_dataset(request, dataset_id)
        reject_later_version(dataset, version)
        rows = ItemVersion.objects.filter(dataset=dataset).select_related("item")
        rows = rows.at_version(version) if has_version else rows.current()
        if search:
            rows = rows.filter(text__contains=search.casefold())
        rows = rows.order_by(order.signed(ITEM_ORDERS[order.field]), "item_id")
        page = read_page(rows, paging, item_body)
        return json_response(list_body("items", page, rows.count(), paging) | warning_payloads(unknown))

    @idempotent_by_reference(respond_with_item)
    def post(self, request: Request, dataset_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id, Role.EDITOR)
        body = json_object_body(request)
        with checking_names(request, body, ItemBody, inside=unknown_in_item(body)) as names:
            columns = parse_item(body)
        (version,) = add_items(dataset, [columns])
        more = warning_payloads(names.unknown)
        return referring_response(item_body(version) | more, {"versions": [version.pk], "more": more}, 201)


def respond_with_items(request: Request, reference: JSONMapping, dataset_id: str) -> HttpResponse:
    """Return the items that a request has added. Raise ApiError."""
    versions = get_item_versions(get_dataset(request, dataset_id, Role.EDITOR), reference["versions"])
    return json_response(batch_body(versions) | reference["more"])


def batch_body(versions: Sequence[ItemVersion]) -> JSONObject:
    return {"items": [item_body(row) for row in versions], "count": len(versions)}


class ItemBatchView(JSONView):
    """Additions and deletions of many items, each as one version."""

    @idempotent_by_reference(respond_with_items)
    def post(self, request: Request, dataset_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id, Role.EDITOR)
        bodies = get_body_list(request, "items")
        with checking_names(request, {}, inside=[*islice(unknown_in_items(bodies), MAX_UNKNOWN_NAMES)]) as names:
            columns = parse_items(bodies)
        versions = add_items(dataset, columns)
        more = warning_payloads(names.unknown)
        reference = {"versions": [row.pk for row in versions], "more": more}
        return referring_response(batch_body(versions) | more, reference, 201)

    def delete(self, request: Request, dataset_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id, Role.EDITOR)
        ids = [parse_uuid(text) if isinstance(text, str) else None for text in get_body_list(request, "itemIds")]
        # What is not a UUID is not the ID of an item, and is ignored like an unknown one.
        count = delete_items(dataset, [item_id for item_id in ids if item_id])
        return json_response({"success": True, "deletedCount": count})


def unknown_in_items(bodies: Sequence[JSONValue]) -> Iterator[UnknownName]:
    """Yield the names in items of a batch that nothing reads."""
    for number, body in enumerate(bodies):
        if isinstance(body, dict):
            path = f"items[{number}]"
            yield from find_unknown_names(body, wire_names(ItemBody), path)
            yield from unknown_in_item(body, path)


def get_body_list(request: Request, name: str) -> list[JSONValue]:
    """Return a list of the body. Raise BadRequest."""
    value = json_object_body(request).get(name)
    if not isinstance(value, list):
        raise BadRequest("request body", [(name, "This must be a list.")])
    if len(value) > MAX_BATCH_ITEMS:
        raise BadRequest("request body", [(name, f"Send at most {MAX_BATCH_ITEMS:,} at a time.")])
    return value


class ItemView(JSONView):
    """An item: read, change and delete."""

    def get(self, request: Request, dataset_id: str, item_id: str) -> HttpResponse:
        return json_response(item_body(get_current(get_dataset(request, dataset_id), item_id)))

    def patch(self, request: Request, dataset_id: str, item_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id, Role.EDITOR)
        item = get_item(dataset, item_id)
        body = json_object_body(request)
        with checking_names(request, body, ItemBody, inside=unknown_in_item(body)) as names:
            columns = parse_item_change(body)
        version = change_item(dataset, item.pk, columns)
        return json_response(item_body(version) | warning_payloads(names.unknown))

    def delete(self, request: Request, dataset_id: str, item_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id, Role.EDITOR)
        if not delete_items(dataset, [get_item(dataset, item_id).pk]):
            raise item_not_found(item_id)
        return json_response({"success": True, "message": f"Item {item_id} deleted"})


def get_current(dataset: Dataset, item_id: str) -> ItemVersion:
    """Return the current version of an item. Raise ApiError."""
    item_uuid: UUID | None = parse_uuid(item_id)
    rows = ItemVersion.objects.current().filter(dataset=dataset, item_id=item_uuid)
    version = rows.select_related("item").first() if item_uuid else None
    if version is None:
        raise item_not_found(item_id)
    return version


class ItemHistoryView(JSONView):
    """The versions of an item, newest first."""

    def get(self, request: Request, dataset_id: str, item_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(MAX_PER_PAGE)  # the published client cannot ask for a second page
            unknown = query.check_unknown_names()
        item = get_item(get_dataset(request, dataset_id), item_id)
        rows = item.versions.select_related("item").order_by("-from_version")
        page = read_page(rows, paging, item_history_body)
        return json_response(list_body("history", page, rows.count(), paging) | warning_payloads(unknown))


class ItemVersionView(JSONView):
    """An item as it was at a version of its dataset."""

    def get(self, request: Request, dataset_id: str, item_id: str, number: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id)
        rows = get_item(dataset, item_id).versions.select_related("item")
        # Below ten digits: Python converts no number of thousands of digits.
        is_version = re.fullmatch(r"[0-9]{1,9}", number) is not None and int(number) <= dataset.version
        version = rows.at_version(int(number)).first() if is_version else None
        if version is None:
            raise item_not_found(item_id)
        return json_response(item_body(version))


class PurgeView(JSONView):
    """The redaction of an item in all its versions and results."""

    def delete(self, request: Request, dataset_id: str, item_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id, Role.PUBLISHER)
        purge_item(dataset, get_item(dataset, item_id), request.user)
        return json_response({"success": True, "message": f"Item {item_id} purged"})
