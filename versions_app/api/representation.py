"""JSON representation of versions. The stored snapshot text is inserted unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from json.encoder import encode_basestring as quoted
from typing import Any, NamedTuple, Self
from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from agentcms.plural import join_words
from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import format_timestamp
from agents_app.models import Agent
from versions_app.compare.diff import FieldDiff, diff_paths, diff_snapshots, line_counts
from versions_app.models import Activation, AgentVersion
from versions_app.models.version import DEFAULT_API_MESSAGE


class VersionRow(NamedTuple):
    """The columns of the representation."""

    id: UUID
    version_number: int
    name: str
    change_message: str
    pinned: bool
    based_on: int | None
    author_name: str
    source: str
    created_at: datetime
    snapshot: str
    changed_fields: str  # JSON

    @classmethod
    def of(cls, version: AgentVersion) -> Self:
        own = {column: getattr(version, column) for column in cls._fields[:-2]}
        return cls(**own, snapshot=version.snapshot_text, changed_fields=json.dumps(version.changed_fields))


VERSION_COLUMNS = (*VersionRow._fields[:-2], "snapshot_text")


class Pointers(NamedTuple):
    """The live and the head version of an agent."""

    agent_id: str
    live_id: UUID | None
    head_id: UUID | None

    @classmethod
    def of(cls, agent: Agent) -> Self:
        return cls(agent.pk, agent.active_version_id, agent.head_version_id)


def version_rows(versions: QuerySet[AgentVersion]) -> QuerySet[AgentVersion, tuple[Any, ...]]:
    """Return the columns of VersionRow as tuples."""
    # As text, which goes into the response as it is.
    return versions.values_list(*VERSION_COLUMNS, Cast("changed_fields", TextField()))


def version_json(row: VersionRow, agent_id: str) -> str:
    """Return a version as JSON text without the closing brace and the pointer fields.

    A format string is three times as fast as an encoder.
    """
    author = quoted(row.author_name) if row.author_name else "null"
    # The protocol has a message for each version. None is stored that nobody wrote.
    message = quoted(row.change_message or DEFAULT_API_MESSAGE)
    based_on = "null" if row.based_on is None else row.based_on
    return (
        f'{{"id":"{row.id}","agentId":{quoted(agent_id)},"versionNumber":{row.version_number},'
        f'"name":{quoted(row.name)},"snapshot":{row.snapshot},"changedFields":{row.changed_fields},'
        f'"changeMessage":{message},"createdAt":"{format_timestamp(row.created_at)}","author":{author},'
        f'"source":{quoted(row.source)},"basedOn":{based_on},"pinned":{_JSON_BOOLEANS[row.pinned]}'
    )


def with_pointers(text: str, version_id: UUID, pointers: Pointers) -> str:
    """Complete the text of `version_json` with the pointer fields."""
    # Apart from `version_json`, whose text is cached: the pointers move, and the rest rarely changes.
    is_active, is_head = _JSON_BOOLEANS[version_id == pointers.live_id], _JSON_BOOLEANS[version_id == pointers.head_id]
    return f'{text},"isActive":{is_active},"isHead":{is_head}}}'


def full_version_json(version: AgentVersion, agent: Agent) -> str:
    """Return a version as complete JSON text."""
    return with_pointers(version_json(VersionRow.of(version), agent.pk), version.pk, Pointers.of(agent))


_JSON_BOOLEANS = {True: "true", False: "false"}
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def comparison_json(before: VersionRow, after: VersionRow) -> str:
    """Return the differences of two versions as JSON text: by field, by path and as a sentence."""
    diffs = diff_snapshots(json.loads(before.snapshot), json.loads(after.snapshot))
    body = {
        "diffs": [{"field": diff.field, "previousValue": diff.before, "currentValue": diff.after} for diff in diffs],
        "summary": comparison_summary(before, after, diffs),
        "details": [detail for diff in diffs for detail in path_details(diff)],
    }
    return _encode(body)


def path_details(diff: FieldDiff) -> Iterator[JSONObject]:
    """Yield each differing path inside a JSON field. A text field has none."""
    if isinstance(diff.before, dict | list) and isinstance(diff.after, dict | list):
        for path in diff_paths(diff.before, diff.after, diff.field):
            yield {"path": path.path, "kind": path.kind, "previousValue": path.before, "currentValue": path.after}


def comparison_summary(before: VersionRow, after: VersionRow, diffs: list[FieldDiff]) -> str:
    """Return the differences as a sentence."""
    if before.version_number == after.version_number:
        return f"Version {before.version_number} is compared with itself."
    if not diffs:
        return f"Versions {before.version_number} and {after.version_number} are identical."
    range_text = f"between version {before.version_number} and version {after.version_number}"
    fields = join_words([_field_text(diff) for diff in diffs])
    return f"{fields[:1].upper()}{fields[1:]} changed {range_text}."


def _field_text(diff: FieldDiff) -> str:
    if diff.field == "instructions":
        added, removed = line_counts(diff.before, diff.after)
        return f"instructions (+{added} −{removed} lines)"
    return diff.field


def activation_payload(activation: Activation) -> JSONObject:
    """Return an entry of the live history as a wire dict."""
    return {
        "id": activation.pk,
        "fromVersionId": activation.from_version_id,
        "fromVersionNumber": activation.from_version_number,
        "toVersionId": activation.to_version_id,
        "toVersionNumber": activation.to_version_number,
        "author": activation.author_name or None,
        "source": activation.source,
        "reason": activation.reason,
        "createdAt": activation.created_at,
    }
