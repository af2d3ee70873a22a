"""Differences between two versions of an item, and the changes of a version of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONObject
from evals_app.compare.word_differences import WordSpan, mark_words
from evals_app.datasets.values import text_of_json
from evals_app.models import Dataset, ItemVersion

FIELD_LABELS = {
    "input": "Input",
    "ground_truth": "Ground truth",
    "expected_trajectory": "Expected steps",
    "tool_mocks": "Tool mocks",
    "unmocked_tool_policy": "Calls without a mock",
    "scorer_keys": "Scorers",
    "request_context": "Request context",
    "metadata": "Metadata",
    "source": "Source",
}
MAIN_FIELDS = ("input", "ground_truth")


class FieldDifference(NamedTuple):
    """A field of an item in two versions, in parts of which those are marked that differ."""

    label: str
    before: list[WordSpan]
    after: list[WordSpan]


class ItemDifference(NamedTuple):
    """An item that a version added, changed or deleted."""

    version: ItemVersion
    kind: str
    fields: list[FieldDifference]


def describe_changes(dataset: Dataset, rows: Sequence[ItemVersion]) -> list[ItemDifference]:
    """Return the differences of item versions to those before them, with one query."""
    numbers, items = {row.from_version for row in rows}, {row.item_id for row in rows}
    # The version before ends where the next one begins.
    ended = ItemVersion.objects.filter(dataset=dataset, to_version__in=numbers, item__in=items)
    earlier = {(row.item_id, row.to_version): row for row in ended}
    return [describe_change(row, earlier.get((row.item_id, row.from_version))) for row in rows]


def describe_change(row: ItemVersion, before: ItemVersion | None) -> ItemDifference:
    """Return the difference of an item version to the one before it."""
    is_new = before is None or before.is_deleted
    kind = "Deleted" if row.is_deleted else "Added" if is_new else "Changed"
    old = {} if before is None or before.is_deleted else before.content
    new = {} if row.is_deleted else row.content
    return ItemDifference(row, kind, [field_difference(name, old, new) for name in changed_item_fields(old, new)])


def changed_item_fields(old: JSONObject, new: JSONObject) -> list[str]:
    names = [name for name in FIELD_LABELS if not json_equal(old.get(name), new.get(name))]
    if old and new:
        return names
    # What is added or deleted as a whole is described by its question and answer.
    return [name for name in names if name in MAIN_FIELDS]


def field_difference(name: str, old: JSONObject, new: JSONObject) -> FieldDifference:
    before, after = text_of_json(old.get(name)), text_of_json(new.get(name))
    if not old or not new:
        return FieldDifference(FIELD_LABELS[name], _whole(before), _whole(after))
    return FieldDifference(FIELD_LABELS[name], *mark_words(before, after))


def _whole(text: str) -> list[WordSpan]:
    return [WordSpan(text, False)] if text else []
