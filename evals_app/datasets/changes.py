"""Changes of the items of a dataset. Each change, of one item or many, is one version."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from django.db import transaction

from agentcms.db.batches import in_batches
from agentcms.errors import ApiError, Conflict
from agentcms.ids import uuid7
from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.editing.change_context import current_change
from evals_app.datasets.derived_columns import mark_resources, search_text_of
from evals_app.datasets.schema import ItemTooLarge, ItemValidator, reject_large_item
from evals_app.models import Dataset, DatasetItem, DatasetVersion, ItemVersion

MAX_ITEMS = 20_000
ITEMS_PER_BATCH = 500


def dataset_not_found(dataset_id: str) -> ApiError:
    return ApiError(404, f"Dataset with id {dataset_id} not found", "DATASET_NOT_FOUND")


def item_not_found(item_id: object) -> ApiError:
    return ApiError(404, f"Item with id {item_id} not found", "DATASET_ITEM_NOT_FOUND")


def validator_of(dataset: Dataset) -> ItemValidator:
    """Return the validator of the items of a dataset."""
    return ItemValidator(
        {
            "input": dataset.input_schema,
            "groundTruth": dataset.ground_truth_schema,
            "requestContext": dataset.request_context_schema,
        }
    )


@transaction.atomic
def add_items(dataset: Dataset, items: Sequence[JSONObject]) -> list[ItemVersion]:
    """Add items as one version. Items with a known external ID replace the item that has it.

    Return the current versions in the order of the items. Nothing is written for an equal item. Raise ConfigError
    for items that the schemas refuse, and Conflict above the limit or for a dataset that has moved.
    """
    change = begin_change(dataset)
    # By the locked row: its schemas may have changed since the caller read it.
    _validate(validator_of(change.dataset), items)
    versions = change.put(items)
    change.save()
    return versions


@transaction.atomic
def change_item(dataset: Dataset, item_id: UUID, columns: JSONObject) -> ItemVersion:
    """Change fields of an item. Equal fields make no version. Raise ConfigError, and ApiError for an unknown item."""
    return change_items(dataset, {item_id: columns})[0]


@transaction.atomic
def change_items(dataset: Dataset, changes: Mapping[UUID, JSONObject]) -> list[ItemVersion]:
    """Change fields of items as one version."""
    change = begin_change(dataset)
    current = change.current(changes)
    validator = validator_of(change.dataset)
    versions = []
    for item_id, columns in changes.items():
        before = current.get(item_id)
        if before is None:
            raise item_not_found(item_id)
        reject_purged(before.item)
        _validate(validator, [{**before.content, **columns}], many=len(changes) > 1)
        versions.append(change.replace(before.item, columns, before))
    change.save()
    return versions


@transaction.atomic
def delete_items(dataset: Dataset, item_ids: Collection[UUID]) -> int:
    """Delete items as one version, and return their number. Earlier versions of the dataset keep them."""
    change = begin_change(dataset)
    for version in change.current(item_ids).values():
        change.delete(version)
    change.save()
    return change.row.deleted


@transaction.atomic
def restore_item(dataset: Dataset, item_id: UUID, version: int) -> ItemVersion:
    """Make an item what it was at a version of its dataset. Raise ApiError if it was not there."""
    change = begin_change(dataset)
    earlier = ItemVersion.objects.at_version(version).filter(dataset=dataset, item_id=item_id).first()
    if earlier is None:
        raise item_not_found(item_id)
    reject_purged(earlier.item)
    restored = change.replace(earlier.item, earlier.content, change.latest([item_id]).get(item_id))
    change.save()
    return restored


def reject_purged(item: DatasetItem) -> None:
    """Raise Conflict for an item whose content was purged."""
    if item.purged_at is not None:
        raise Conflict(f"Item {item.pk} was purged and cannot be used. Delete it.", "DATASET_ITEM_PURGED")


def _validate(validator: ItemValidator, items: Sequence[JSONMapping], many: bool = True) -> None:
    issues: list[Issue] = []
    for number, columns in enumerate(items):
        path = f"items[{number}]" if many and len(items) > 1 else ""
        issues += validator.issues(columns, path)
    if issues:
        raise ConfigError(issues)


def lock_dataset(dataset_id: str) -> Dataset:
    """Lock a dataset for the transaction, as each change of its items does. Raise ApiError if it was deleted.

    Rows that refer to the dataset can be stored meanwhile. Otherwise a result whose experiment is locked would wait
    for the change, and the change for the item of the result.
    """
    locked = Dataset.objects.select_for_update(no_key=True).filter(pk=dataset_id).first()
    if locked is None:
        raise dataset_not_found(dataset_id)
    return locked


def begin_change(dataset: Dataset) -> ItemsChange:
    """Return a change of the items of a dataset, in which the caller has checked the role of the user.

    Raise Conflict if the dataset has moved to another team since.
    """
    change = ItemsChange(dataset)
    reject_move(change.dataset, dataset)
    return change


def reject_move(locked: Dataset, dataset: Dataset) -> None:
    """Raise Conflict if a dataset has moved since it was read, to a team in which the user may have another role.

    So is one that was created with its ID meanwhile.
    """
    if locked.created_at != dataset.created_at:
        raise Conflict("The dataset was deleted meanwhile, and another one has its ID now.", "dataset_replaced")
    if locked.owner_id != dataset.owner_id:
        raise Conflict("The dataset was moved to another team meanwhile. Repeat the change.", "dataset_moved")


class ItemsChange:
    """A change of items, which becomes the next version of the dataset when it is saved.

    Locks the dataset for the transaction. Raise ApiError if it was deleted meanwhile.
    """

    def __init__(self, dataset: Dataset) -> None:
        locked = lock_dataset(dataset.pk)
        self.dataset = locked
        actor = current_change().actor
        self.row = DatasetVersion(
            dataset=locked,
            version=locked.version + 1,
            author=actor,
            author_name=actor.get_username() if actor else "",
            source=current_change().source,
        )
        self.new_items: list[DatasetItem] = []
        self.opened: dict[UUID, ItemVersion] = {}  # by the ID of the item
        self.closed: list[ItemVersion] = []
        self.last_id = 0
        # It gets the new version as well: responses and messages of the caller name it.
        self._caller_row = dataset

    def by_external_id(self, keys: Collection[str]) -> dict[str, DatasetItem]:
        """Return the items with these external IDs."""
        rows: dict[str, DatasetItem] = {}
        for names in in_batches(list(dict.fromkeys(keys)), ITEMS_PER_BATCH):
            batch = self.dataset.items.filter(external_id__in=names)
            rows |= {row.external_id: row for row in batch if row.external_id}
        return rows

    def current(self, item_ids: Collection[UUID]) -> dict[UUID, ItemVersion]:
        """Return the current versions of items that are not deleted, by the ID of the item."""
        return {item_id: row for item_id, row in self.latest(item_ids).items() if not row.is_deleted}

    def latest(self, item_ids: Collection[UUID]) -> dict[UUID, ItemVersion]:
        """Return the last versions of items, by the ID of the item."""
        versions: dict[UUID, ItemVersion] = {}
        for batch in in_batches(list(item_ids), ITEMS_PER_BATCH):
            rows = ItemVersion.objects.filter(dataset=self.dataset, to_version=None, item_id__in=batch)
            versions |= {row.item_id: row for row in rows.select_related("item")}
        return versions

    def add(self, content: JSONObject, external_id: str | None = None) -> ItemVersion:
        # IDs of one millisecond are in random order. Those of a batch grow, so that its items keep their order.
        self.last_id = max(uuid7().int, self.last_id + 1)
        item = DatasetItem(pk=UUID(int=self.last_id), dataset=self.dataset, external_id=external_id)
        self.new_items.append(item)
        self.row.added += 1
        return self._open(item, content)

    def replace(self, item: DatasetItem, content: JSONObject, before: ItemVersion | None) -> ItemVersion:
        """Set fields of an item, and keep the others. An item that was deleted is there again."""
        if item.pk in self.opened:  # the same external ID twice in one batch
            _set_content(self.opened[item.pk], content)
            return self.opened[item.pk]
        if before is None or before.is_deleted:
            self.row.added += 1
        elif json_equal(before.content, {**before.content, **content}):
            return before
        else:
            self.row.changed += 1
        if before is not None:
            self.closed.append(before)
        content_before = before.content if before is not None and not before.is_deleted else {}
        return self._open(item, {**content_before, **content})

    def delete(self, version: ItemVersion) -> None:
        self.closed.append(version)
        self.row.deleted += 1
        # A version without content, by which the history says in which change the item was deleted.
        deleted = self._open(version.item, {"input": None})
        deleted.is_deleted = True

    def put(self, items: Sequence[JSONObject]) -> list[ItemVersion]:
        """Add items, or replace those with their external IDs. Return the current versions in the same order.

        Raise ItemTooLarge for one that is above the limit with what it keeps.
        """
        known = self.by_external_id([item["external_id"] for item in items if item.get("external_id")])
        latest = self.latest([item.pk for item in known.values()])
        versions = []
        for number, columns in enumerate(items):
            try:
                versions.append(self._put_one(columns, known, latest))
            except ItemTooLarge:
                raise ItemTooLarge(number, f"items[{number}]" if len(items) > 1 else "") from None
        return versions

    def _put_one(
        self, columns: JSONObject, known: dict[str, DatasetItem], latest: Mapping[UUID, ItemVersion]
    ) -> ItemVersion:
        content = {name: value for name, value in columns.items() if name != "external_id"}
        external_id = columns.get("external_id")
        if external_id and external_id in known:
            item = known[external_id]
            reject_purged(item)
            return self.replace(item, content, latest.get(item.pk))
        version = self.add(content, external_id)
        if external_id:
            known[external_id] = version.item
        return version

    def flush(self) -> None:
        """Write the items so far. Many items are written in parts, none of which changes the same item again."""
        DatasetItem.objects.bulk_create(self.new_items, batch_size=ITEMS_PER_BATCH)
        for ids in in_batches([version.pk for version in self.closed], ITEMS_PER_BATCH):
            ItemVersion.objects.filter(pk__in=ids).update(to_version=self.row.version)
        versions = list(self.opened.values())
        mark_resources(versions)
        ItemVersion.objects.bulk_create(versions, batch_size=ITEMS_PER_BATCH)
        self.new_items, self.closed, self.opened = [], [], {}

    def save(self) -> None:
        """Write the version, unless nothing changed. Raise Conflict if the dataset would have too many items."""
        if not (self.row.added or self.row.changed or self.row.deleted):
            return
        count = self.dataset.item_count + self.row.added - self.row.deleted
        if count > MAX_ITEMS:
            raise Conflict(f"A dataset has at most {MAX_ITEMS:,} items. Delete some first.", "too_many_items")
        self.flush()
        self.row.save(force_insert=True)
        for row in (self.dataset, self._caller_row):
            row.version, row.item_count, row.updated_at = self.row.version, count, self.row.created_at
        self.dataset.save(update_fields=["version", "item_count", "updated_at"])

    def _open(self, item: DatasetItem, content: JSONObject) -> ItemVersion:
        version = ItemVersion(
            item=item, dataset=self.dataset, from_version=self.row.version, created_at=self.row.created_at
        )
        _set_content(version, content)
        self.opened[item.pk] = version
        return version


def _set_content(version: ItemVersion, content: JSONObject) -> None:
    for name, value in content.items():
        setattr(version, name, value)
    reject_large_item(version.content)
    version.text = search_text_of(version)
