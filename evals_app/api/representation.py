"""Datasets and items in the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentcms.api.pagination import Paging
from agentcms.wire.json_types import JSONObject
from evals_app.models import Dataset, DatasetVersion, ItemVersion


def list_body(key: str, rows: Sequence[Any], total: int, paging: Paging) -> JSONObject:
    """Return a page as the client of the protocol reads it."""
    has_more = paging.stop < total
    pagination = {"total": total, "page": paging.page, "perPage": paging.per_page, "hasMore": has_more}
    return {key: rows, "pagination": pagination}


def dataset_body(dataset: Dataset) -> JSONObject:
    schemas = {
        "inputSchema": dataset.input_schema,
        "groundTruthSchema": dataset.ground_truth_schema,
        "requestContextSchema": dataset.request_context_schema,
    }
    return {
        "id": dataset.pk,
        "name": dataset.name,
        "description": dataset.description,
        "ownerId": dataset.owner_id,
        "metadata": dataset.metadata,
        **{name: schema for name, schema in schemas.items() if schema is not None},
        "tags": dataset.tags,
        "targetType": dataset.target_type or None,
        "targetIds": dataset.target_ids,
        "scorerIds": dataset.scorer_keys,
        "version": dataset.version,
        "itemCount": dataset.item_count,
        "archivedAt": dataset.archived_at,
        "createdAt": dataset.created_at,
        "updatedAt": dataset.updated_at,
    }


def item_body(version: ItemVersion) -> JSONObject:
    """Return an item. The version must come with its item."""
    return {
        "id": version.item_id,
        "datasetId": version.dataset_id,
        "datasetVersion": version.from_version,
        "externalId": version.item.external_id,
        **version.wire_content,
        "createdAt": version.item.created_at,
        "updatedAt": version.created_at,
    }


def item_history_body(version: ItemVersion) -> JSONObject:
    """Return a version of an item in its history. The version must come with its item."""
    return {**item_body(version), "validTo": version.to_version, "isDeleted": version.is_deleted}


def dataset_version_body(version: DatasetVersion) -> JSONObject:
    return {
        "id": version.pk,
        "datasetId": version.dataset_id,
        "version": version.version,
        "author": version.author_name or None,
        "source": version.source,
        "added": version.added,
        "changed": version.changed,
        "deleted": version.deleted,
        "createdAt": version.created_at,
    }
