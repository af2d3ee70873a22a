"""The working memory of a resource or a thread: reading and changing it under the lock of its row.

Each change is a revision, of which the last twenty are stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agentcms.wire.json_parser import InvalidJSON, parse_typed_json
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.json_issues import issues_by_schema
from agents_app.configuration.memory.options import WorkingMemoryOptions
from agents_app.configuration.schema import Issue
from memory_app.models import Resource, Thread, WorkingRevision
from memory_app.working.merging import merge_working_memory

MAX_REVISIONS = 20
FIELD = "workingMemory"  # in the paths of issues
MEMORY_MOVED_MESSAGE = "The working memory has changed meanwhile. Read it again, and send the whole text."
MEMORY_NOT_JSON_MESSAGE = "This must be a JSON object, because the agent has a schema for its working memory."

Holder = Resource | Thread  # the row that has a working memory


class WorkingMemory(NamedTuple):
    """A value with its revision. The text is None if there is none. Revision 0 is the one before the first change."""

    text: str | None
    revision: int


@dataclass(frozen=True)
class Origin:
    """The author of a change: a run or a user."""

    run_id: UUID | None = None
    user_id: int | None = None


class ChangeResult(NamedTuple):
    """The working memory after an attempt to change it, and why it was not changed."""

    memory: WorkingMemory
    issues: list[Issue]
    has_moved: bool = False

    @property
    def is_written(self) -> bool:
        return not self.issues and not self.has_moved


def find_holder(options: WorkingMemoryOptions, resource_id: int | None, thread_id: int | None) -> Holder | None:
    """Return the row that has the working memory of a run, or None if the run has no such row."""
    if options.scope == "thread":
        return Thread.objects.filter(pk=thread_id).first() if thread_id is not None else None
    return Resource.objects.filter(pk=resource_id).first() if resource_id is not None else None


def read_memory(holder: Holder) -> WorkingMemory:
    return WorkingMemory(holder.working_memory, holder.working_revision)


def blank_text(options: WorkingMemoryOptions) -> str:
    """Return what a working memory without a value looks like: the template, or an empty object."""
    return "{}" if options.json_schema is not None else options.template or ""


def replace_text(holder: Holder, text: str | None, origin: Origin, expected: int | None = None) -> ChangeResult:
    """Replace the whole text. With an expected revision, nothing is written if there is another one."""
    return change_working_memory(
        holder, origin, lambda stored: (text if text and text.strip() else None, []), expected
    )


def skip_own_revisions(holder: Holder, revision: int, run_id: UUID) -> int:
    """Return the last revision that a run knows: the given one, or that of its own changes right after it."""
    own = {*holder.working_revisions.filter(revision__gt=revision, run_id=run_id).values_list("revision", flat=True)}
    while revision + 1 in own:
        revision += 1
    return revision


def merge_object(holder: Holder, update: object, schema: JSONMapping, origin: Origin) -> ChangeResult:
    """Merge an object into the stored one, and validate the result with a schema. None clears it."""

    def merged(stored: str | None) -> tuple[str | None, list[Issue]]:
        if update is None:
            return None, []
        if not isinstance(update, dict):
            return stored, [Issue(FIELD, MEMORY_NOT_JSON_MESSAGE)]
        value = merge_working_memory(parse_object(stored), update)
        return encode(value), issues_by_schema(value, schema, FIELD)

    return change_working_memory(holder, origin, merged)


def replace_object(
    holder: Holder, text: str | None, schema: JSONMapping, origin: Origin, expected: int | None
) -> ChangeResult:
    """Replace the whole object by that of a text, and validate it with a schema. A blank text clears it."""

    def parsed(stored: str | None) -> tuple[str | None, list[Issue]]:
        if not (text and text.strip()):
            return None, []
        try:
            value = parse_typed_json(text)
        except InvalidJSON as error:
            return stored, [Issue(fault.field or FIELD, fault.message) for fault in error.faults]
        if not isinstance(value, dict):
            return stored, [Issue(FIELD, MEMORY_NOT_JSON_MESSAGE)]
        return encode(value), issues_by_schema(value, schema, FIELD)

    return change_working_memory(holder, origin, parsed, expected)


def write_text(
    holder: Holder, text: str | None, options: WorkingMemoryOptions | None, origin: Origin, expected: int | None = None
) -> ChangeResult:
    """Replace the working memory by what a person or a client wrote, a text or an object as JSON."""
    if options is not None and options.json_schema is not None:
        return replace_object(holder, text, options.json_schema, origin, expected)
    return replace_text(holder, text, origin, expected)


def restore_revision(holder: Holder, revision: int, origin: Origin) -> ChangeResult:
    """Write the value of a stored revision again, as a new revision. Raise WorkingRevision.DoesNotExist."""
    text = None if revision == 0 else revisions_of(holder).get(revision=revision).value
    return change_working_memory(holder, origin, lambda stored: (text, []))


def revisions_of(holder: Holder) -> QuerySet[WorkingRevision]:
    """Return the stored revisions, the latest first."""
    return holder.working_revisions.order_by("-revision")


def change_working_memory(
    holder: Holder,
    origin: Origin,
    compute: Callable[[str | None], tuple[str | None, list[Issue]]],
    expected: int | None = None,
) -> ChangeResult:
    """Change a working memory under the lock of its row. `compute` returns its new text, and the issues of it."""
    with transaction.atomic():
        row = lock_holder(holder)
        before = read_memory(row)
        if expected is not None and expected != before.revision:
            return ChangeResult(before, [], has_moved=True)
        text, issues = compute(before.text)
        issues = issues or size_issues(text)
        # An equal text is no change: it would push an earlier value out of the stored revisions.
        if issues or text == before.text:
            return ChangeResult(before, issues)
        return ChangeResult(write_locked(row, text, origin), [])


def lock_holder(holder: Holder) -> Holder:
    if isinstance(holder, Thread):
        return Thread.objects.select_for_update(of=("self",)).get(pk=holder.pk)
    return Resource.objects.select_for_update(of=("self",)).get(pk=holder.pk)


def write_locked(row: Holder, text: str | None, origin: Origin) -> WorkingMemory:
    """Write a new revision of a locked row, and delete the oldest ones."""
    revision = row.working_revision + 1
    row.working_memory, row.working_revision = text, revision
    row.updated_at = timezone.now()  # the clean-up deletes what nobody has changed for long
    row.save(update_fields=["working_memory", "working_revision", "updated_at"])
    row.working_revisions.create(revision=revision, value=text, run_id=origin.run_id, user_id=origin.user_id)
    row.working_revisions.filter(revision__lte=revision - MAX_REVISIONS).delete()
    return WorkingMemory(text, revision)


def size_issues(text: str | None) -> list[Issue]:
    limit = settings.WORKING_MEMORY_MAX_KB
    # A text may contain half of a surrogate pair, at which a strict encoding would raise.
    if text is None or len(text.encode("utf-8", "surrogatepass")) <= limit * 1024:
        return []
    return [Issue(FIELD, f"This must not exceed {limit} KB. Leave out what is no longer needed.")]


def parse_object(text: str | None) -> JSONObject:
    """Return a stored object. A text that is none counts as an empty one: the agent may have had a template."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
