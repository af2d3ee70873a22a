"""The trash: a deleted agent is kept as one compressed record, and restored from it with the same version IDs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.contrib.admin.models import ADDITION, DELETION
from django.contrib.auth import get_user_model
from django.core import serializers
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from agents_app.configuration import schema
from agents_app.configuration.sub_agents import CircularReference, reject_circular_reference
from agents_app.editing.audit import log_agent_action
from agents_app.editing.change_context import current_change
from agents_app.editing.saving import AgentWrite
from agents_app.models import Agent
from agents_app.models.search_index import rebuild_index
from versions_app.models import Activation, AgentVersion, DeletedAgent

# The rows that a record has besides the agent itself. Each model has a foreign key `agent`. Apps above add to it.
related_models: list[type[models.Model]] = [AgentVersion, Activation]
# Each raises RestoreRefused for a row that cannot be inserted again.
row_checks: list[Callable[[models.Model], None]] = []
AUTHOR_COLUMNS = ("author_id", "created_by_id")
READ_SIZE = 20  # versions that are read at a time; each may have several megabytes
INFLATE_SIZE = 1 << 20  # bytes that are decompressed at a time


class RestoreRefused(Exception):
    """An agent cannot be restored. The message is the reason with a way out."""


class AgentIDTaken(RestoreRefused):
    """Another agent has the ID of a deleted one."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"Another agent has the ID {agent_id}. Restore this one under another ID.")


class ExactEncoder(DjangoJSONEncoder):
    """An encoder that keeps microseconds, which Django's drops."""

    def default(self, value: object) -> Any:
        return value.isoformat() if isinstance(value, datetime) else super().default(value)


def store_record(agent: Agent) -> None:
    """Store the record of an agent that is about to be deleted. The caller holds its lock."""
    actor = current_change().actor
    # Read again: the object that is deleted may be stale, or lack columns.
    agents = Agent.objects.select_related("active_version").defer("active_version__snapshot_text")
    row = agents.filter(pk=agent.pk).first()
    if row is None:  # deleted before
        return
    DeletedAgent.objects.create(
        agent_key=row.pk,
        name=row.name,
        owner_id=row.owner_id,
        live_version_number=row.active_version.version_number if row.active_version else None,
        version_count=AgentVersion.objects.filter(agent_id=row.pk).count(),
        deleted_by=actor,
        deleted_by_name=actor.get_username() if actor else "",
        record=build_record(row.pk),
    )
    log_agent_action(row.pk, row.name, "Deleted", DELETION)


def build_record(agent_id: str) -> bytes:
    """Return the rows of an agent as compressed JSON Lines: the agent first."""
    compressor = zlib.compressobj()
    parts = [compressor.compress(line) for line in row_lines(agent_id)]
    return b"".join((*parts, compressor.flush()))


def row_lines(agent_id: str) -> Iterator[bytes]:
    agents: models.QuerySet[Any] = Agent.objects.filter(pk=agent_id)
    # By the base managers: the default ones may hide rows or leave out columns.
    for rows in (agents, *(model._base_manager.filter(agent=agent_id) for model in related_models)):
        for row in rows.order_by("pk").iterator(READ_SIZE):
            yield serializers.serialize("jsonl", [row], cls=ExactEncoder).encode()


def restore_locked(deleted: DeletedAgent, agent_id: str = "") -> Agent:
    """Restore an agent with its versions and its live history, and remove its record.

    The caller holds the lock of the record. A blank ID stands for the one that the agent had. Raise RestoreRefused,
    ConfigError for another ID that no agent may have, and CircularReference if sub-agents refer to that ID since.
    """
    agent_id = agent_id or deleted.agent_key
    if agent_id != deleted.agent_key:
        schema.reject_ambiguous_id(agent_id)
    insert_rows(bytes(deleted.record), agent_id)
    row = Agent.objects.get_locked(agent_id)
    if actor := current_change().actor:
        versions = [version for version in (row.active_version, row.head_version) if version]
        keys = [key for version in versions for key in version.references.get("agents", ())]
        reject_circular_reference(actor, agent_id, [*dict.fromkeys(keys)])
    write = AgentWrite(row)
    # A new revision: no ETag and no cached answer of the deleted agent may match the restored one.
    write.set(revision=row.revision + 1, updated_at=timezone.now())
    write.send()
    rebuild_index(row)
    deleted.delete()
    log_agent_action(row.pk, row.name, "Restored from the trash", ADDITION)
    return row


def circular_reference_message(error: CircularReference) -> str:
    """Return why an agent cannot be restored under an ID, with the ways out."""
    return f"{error.summary} Restore it under another ID, or change the other agent first."


def insert_rows(record: bytes, agent_id: str) -> None:
    """Insert the rows of a record for an agent with this ID. Raise RestoreRefused."""
    authors: dict[int, int | None] = {}
    # A record may have a column that a later release has removed.
    for item in serializers.deserialize("jsonl", record_lines(record), ignorenonexistent=True):
        row: Any = item.object
        # First the agent, with pointers to versions that follow: the database checks foreign keys at the commit.
        if isinstance(row, Agent):
            row.pk = agent_id
            # In a savepoint: after an error, PostgreSQL would refuse all else that the transaction still has to do.
            try:
                with transaction.atomic():
                    item.save(force_insert=True)
            except IntegrityError:
                raise AgentIDTaken(agent_id) from None
            continue
        row.agent_id = agent_id
        for check in row_checks:
            check(row)
        for column in AUTHOR_COLUMNS:
            if hasattr(row, column):
                setattr(row, column, find_author(getattr(row, column), authors))
        # Saves the row as it is, without `save()` of the model: a version keeps its number, its time and its hash.
        item.save(force_insert=True)


def find_author(user_id: int | None, known_ids: dict[int, int | None]) -> int | None:
    """Return the ID of a user who still exists, else None. `known_ids` is a cache."""
    if user_id is None:
        return None
    if user_id not in known_ids:
        known_ids[user_id] = get_user_model().objects.filter(pk=user_id).values_list("pk", flat=True).first()
    return known_ids[user_id]


def record_lines(record: bytes) -> Iterator[str]:
    """Yield the lines of a record. Only one of them is in memory at a time."""
    inflater, rest, data = zlib.decompressobj(), b"", record
    while data:
        rest += inflater.decompress(data, INFLATE_SIZE)
        data = inflater.unconsumed_tail
        *lines, rest = rest.split(b"\n")
        yield from (line.decode() for line in lines)
    yield from (line.decode() for line in (rest + inflater.flush()).splitlines())


def purge_locked(deleted: DeletedAgent) -> None:
    """Delete a record, so that the agent cannot be restored. The caller holds its lock."""
    log_agent_action(deleted.agent_key, deleted.name, "Deleted for good", DELETION)
    deleted.delete()
