"""The agent. Its row always has the content of its head version."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from copy import deepcopy
from typing import Any, ClassVar, Self

from django.db import models, transaction
from django.db.models.signals import pre_save
from django.utils import timezone

from agentcms.db.statements import write_batch
from agentcms.ids import random_key
from agentcms.wire.canonical import canonical, json_equal
from agentcms.wire.json_types import JSONObject
from agents_app.configuration import mcp_clients, schema
from agents_app.editing.archive_guard import reject_archived
from agents_app.editing.change_context import change, current_change
from agents_app.editing.saving import AgentWrite, agent_saving
from agents_app.models.configuration_columns import ConfigurationColumns
from agents_app.models.querysets import AgentQuerySet
from agents_app.models.version_protocol import Version

log = logging.getLogger(__name__)

EDITABLE_FIELDS = (*schema.FIELDS, "owner_id")
# update_or_create() names them; save() does not write them.
TIMESTAMP_FIELDS = ("created_at", "updated_at", "archived_at")
HISTORY_FIELDS = ("active_version", "head_version", "last_version_number", "revision", "updated_at")


class Agent(ConfigurationColumns):
    """An AI agent: its configuration, its owner and the pointers to its live and head versions."""

    owner_id = models.CharField("owner", max_length=128, blank=True, default="")

    # Not PROTECT, which would also refuse to delete an agent together with its versions.
    active_version = models.ForeignKey(
        "versions_app.AgentVersion", models.RESTRICT, null=True, editable=False, related_name="+"
    )
    head_version = models.ForeignKey(
        "versions_app.AgentVersion", models.RESTRICT, null=True, editable=False, related_name="+"
    )
    last_version_number = models.PositiveIntegerField(default=0, editable=False)
    revision = models.PositiveBigIntegerField(default=0, editable=False)
    row_key = models.CharField(max_length=12, default=random_key, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)
    archived_at = models.DateTimeField(null=True, editable=False)  # null unless the agent is archived
    archived_by_name = models.CharField(max_length=150, blank=True, default="", db_default="", editable=False)

    granted: str | None  # the role that the owner granted the caller, from `with_role()`
    # As it was read. A save writes another owner only if it was changed on this object, which may be stale.
    _stored_owner_id: str | None = None

    draft_reason = ""  # why the last save stayed a draft although it could have gone live
    is_gate_bypassed = False  # True if the last move of live went past a gate that refused it
    gate_warning = ""  # what the gates say of the version that went live last

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at", "id"]
        indexes: ClassVar = [
            # A list and its count read this index and not the table. With the condition, PostgreSQL need not test each
            # entry; SQLite still tests the columns, so they are part of the index.
            models.Index(
                fields=["-created_at", "id", "active_version", "archived_at"],
                name="agent_listed",
                condition=models.Q(active_version__isnull=False, archived_at__isnull=True),
            ),
            models.Index(
                fields=["-created_at", "id", "active_version", "archived_at"],
                name="agent_archived",
                condition=models.Q(active_version__isnull=False, archived_at__isnull=False),
            ),
            models.Index(fields=["-updated_at", "id"], name="agent_updated"),
            models.Index(fields=["name", "id"], name="agent_name"),
            # Not `db_index`: for text it makes two indexes on PostgreSQL, and every edit writes to both.
            models.Index(fields=["owner_id"], name="agent_owner"),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *, update_fields: Iterable[str] | None = None, using: str | None = None, **unused: object) -> None:
        """Validate the agent and write its row and its history in one transaction.

        An existing agent writes its configuration, and its owner if that was changed on this object. A stale copy
        moves no pointer. Raise Agent.DoesNotExist if the row was deleted, and CircularReference if it comes to name
        sub-agents that lead back to it, as far as the actor can see.
        """
        # Django passes `force_insert` and others, which are not needed: `_state` says whether the row is new.
        fields = self._fields_to_save(update_fields)
        with transaction.atomic(using):
            self.clean()
            if self._state.adding:
                self._insert()
            elif fields:
                self._update(fields)

    def insert(self) -> None:
        """Insert a new agent with its first version. Its fields are validated before; `save()` validates them too."""
        schema.reject_ambiguous_id(self.pk)
        with transaction.atomic():
            self._insert()

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Delete the agent with its history. `versions_app.trash` keeps a record, from which it can be restored."""
        with transaction.atomic():
            Agent.objects.filter(pk=self.pk).lock_to_delete()
            return super().delete(*args, **kwargs)

    def refresh_from_db(self, using: str | None = None, fields: Any = None, from_queryset: Any = None) -> None:
        super().refresh_from_db(using, fields, from_queryset)
        if fields is None or "owner_id" in fields:
            self._stored_owner_id = vars(self).get("owner_id")

    @classmethod
    def from_db(cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any) -> Self:
        agent = super().from_db(db, field_names, values, **options)
        # Not by the attribute, which would load a deferred column.
        agent._stored_owner_id = agent.__dict__.get("owner_id")
        return agent

    def clean(self) -> None:
        """Validate the configuration, except deferred fields and expressions. Raise ConfigError."""
        super().clean()
        known = {name: value for name, value in vars(self).items() if not hasattr(value, "resolve_expression")}
        body = {**schema.to_wire_dict(known), "id": self.pk, "ownerId": vars(self).get("owner_id")}
        validate = schema.validate_agent if known.keys() >= set(schema.FIELDS) else schema.validate_partial
        validate(body)
        if self._state.adding:
            schema.reject_ambiguous_id(str(self.pk))

    def _fields_to_save(self, update_fields: Iterable[str] | None) -> list[str]:
        fields = list(EDITABLE_FIELDS if update_fields is None else update_fields)
        if read_only := sorted({*fields} - {*EDITABLE_FIELDS, *TIMESTAMP_FIELDS}):
            raise TypeError(f"save() does not write {', '.join(read_only)}. Publish or restore a version.")
        return [name for name in fields if name in EDITABLE_FIELDS and name not in self.get_deferred_fields()]

    def _insert(self) -> None:
        """Insert a new row with a history of its own, wherever its values were copied from."""
        self.active_version = self.head_version = None
        self.last_version_number = self.revision = 0
        self.archived_at, self.archived_by_name = None, ""
        self.row_key = random_key()
        self.created_at = current_change().time
        self._complete_mcp_clients(self.owner_id)
        with write_batch.send_save_signals(self, created=True):
            Agent.objects.insert_unguarded(self)
            self._stored_owner_id = self.owner_id
            self._read_computed(schema.FIELDS)
            write = AgentWrite(self)
            with change(at=self.created_at):  # one time of the agent and its first version
                agent_saving.send(type(self), write=write)
            write.send()

    def _update(self, fields: Collection[str]) -> None:
        """Write the named fields of this object over the row as it is under its lock."""
        names = [name for name in fields if name in schema.FIELDS]
        new_owner = "owner_id" in fields and self.owner_id != self._stored_owner_id
        row = Agent.objects.get_locked(self.pk)
        reject_archived(row)
        if "mcp_clients" in names:
            self._complete_mcp_clients(self.owner_id if new_owner else row.owner_id, stored=row.mcp_clients)
        with write_batch.send_save_signals(self, fields):
            write = AgentWrite(row, self._copy_configuration_to(row, names))
            if new_owner and row.owner_id != self.owner_id:
                _add_owner_change(write, self.owner_id)
            if names:
                agent_saving.send(type(self), write=write)
            write.send()
            copy_fields(self, row, HISTORY_FIELDS)
        if new_owner:
            self._stored_owner_id = self.owner_id

    def _complete_mcp_clients(self, owner_id: str, stored: object = None) -> None:
        """List the tools of MCP servers by name, as `edit()` does. None and an expression stay as they are.

        So does what is `stored`: a save of other fields accepts no definitions.
        """
        if isinstance(self.mcp_clients, dict) and not json_equal(self.mcp_clients, stored):
            self.mcp_clients = mcp_clients.complete(self.mcp_clients, owner_id)

    def _copy_configuration_to(self, row: Agent, names: Iterable[str]) -> list[str]:
        """Give a locked row these fields of this object. Return the names of the columns still to be written.

        Expressions are written at once, because only the database knows their values.
        """
        if computed := {name: vars(self)[name] for name in self._computed(names)}:
            Agent.objects.filter(pk=self.pk).update_unguarded(**computed)
            row.refresh_from_db(fields=[*computed])
            copy_fields(self, row, computed)
            self.clean()
        columns = [name for name in names if name not in computed]
        copy_fields(row, self, columns)
        return columns

    def _computed(self, names: Iterable[str]) -> list[str]:
        """Return the names of the fields whose values are expressions."""
        return [name for name in names if hasattr(vars(self).get(name), "resolve_expression")]

    def _read_computed(self, names: Iterable[str]) -> None:
        """Read and validate the values of fields that were saved as expressions."""
        if computed := self._computed(names):
            self.refresh_from_db(fields=computed)
            self.clean()

    def edit(self, fields: JSONObject) -> Version | None:
        """Change configuration fields on top of the head. An edit without a difference writes nothing.

        While there is a draft, an edit that publishes starts from the live version, and the draft stays. Return the
        version made, if any. Raise ConfigError, AgentArchived for an archived agent, and TypeError for names that
        are not configuration fields.
        """
        if unknown := sorted(fields.keys() - {*schema.FIELDS}):
            raise TypeError(f"edit() does not write {', '.join(unknown)}, only configuration fields.")
        # Before the transaction: nobody waits for the lock while the fields are validated.
        validated = schema.validate_partial(schema.to_wire_dict(fields))
        with transaction.atomic():
            row = Agent.objects.get_locked(self.pk)
            version = row.edit_locked(validated)
        self.copy_state_from(row)
        return version

    def edit_locked(self, fields: JSONObject) -> Version | None:
        """Do what `edit` does for validated fields of a row that `get_locked()` locked in this transaction."""
        reject_archived(self)
        fields = mcp_clients.complete_fields(fields, self.owner_id)
        # To publish the head would publish the draft of somebody else with the edit.
        if self.active_version and self.has_draft and current_change().publish:
            return self.active_version.amend_locked(self, fields)
        if not self.has_changes(fields):
            return None
        self.write_locked(fields)
        return self.head_version

    def write_locked(self, fields: JSONObject) -> None:
        """Write validated fields of a row that `get_locked()` locked in this transaction, on top of the head."""
        reject_archived(self)
        for name, value in fields.items():
            setattr(self, name, value)
        with write_batch.send_save_signals(self, fields):
            # A receiver of `pre_save` may have changed other fields, which the version records.
            write = AgentWrite(self, schema.FIELDS if pre_save.has_listeners(type(self)) else fields)
            agent_saving.send(type(self), write=write)
            write.send()

    def share_live_head(self) -> None:
        """Use one object for both versions if the head is live, so that it is read once."""
        if self.head_version_id is not None and self.head_version_id == self.active_version_id:
            self.head_version = self.active_version

    def copy_state_from(self, row: Agent) -> None:
        """Copy all values and loaded versions of another object of the same row."""
        for field in self._meta.concrete_fields:
            setattr(self, field.attname, getattr(row, field.attname))
        self._state.fields_cache = dict(row._state.fields_cache)
        self._stored_owner_id = row._stored_owner_id

    def has_changes(self, fields: JSONObject) -> bool:
        """Return whether a value differs from the row's as JSON."""
        return not all(json_equal(value, getattr(self, name)) for name, value in fields.items())

    def change_owner(self, owner_id: str) -> None:
        """Give the agent to another owner. Make no version, because a snapshot has no owner."""
        with transaction.atomic():
            row = Agent.objects.get_locked(self.pk)
            reject_archived(row)
            if row.owner_id != owner_id:
                row.owner_id = owner_id
                row.clean()
                with write_batch.send_save_signals(row, ["owner_id"]):
                    write = AgentWrite(row)
                    _add_owner_change(write, owner_id)
                    write.send()
        copy_fields(self, row, ("owner_id", "revision", "updated_at"))
        self._stored_owner_id = owner_id

    def duplicate(self, agent_id: str, owner_id: str, version: Version, name: str | None = None) -> Agent:
        """Create an agent with the configuration of a version of this one and a history of its own."""
        # A copy: the lists of the new agent must not be those of the version.
        fields = deepcopy(self.resolved(version))
        if name is not None:
            fields["name"] = name
        copy = Agent(id=agent_id, owner_id=owner_id, **fields)
        with change(message=f"Duplicated from {self.pk} version {version.version_number}"):
            copy.save()
        return copy

    @property
    def snapshot_text(self) -> str:
        """The configuration as canonical JSON under wire names, as a version stores it."""
        return canonical(schema.to_snapshot(vars(self)))

    @property
    def has_draft(self) -> bool:
        """Return whether the head differs from the live version."""
        head, live = self.head_version, self.active_version
        return head is not None and live is not None and head.snapshot_hash != live.snapshot_hash

    def resolved(self, version: Version | None = None) -> JSONObject:
        """Return the configuration of a version, by default of the live one, by Python name."""
        version = version or self.active_version
        if version is None:
            raise ValueError(f"Agent {self.pk} has no live version.")
        return schema.from_snapshot(version.snapshot)

    @property
    def etag(self) -> str:
        """The tag of this state. The row's key tells agents apart that had the same ID one after the other."""
        return f"{self.row_key}.{self.revision}"


def copy_fields(agent: Agent, row: Agent, fields: Iterable[str] = (*schema.FIELDS, *HISTORY_FIELDS)) -> None:
    """Copy fields from the row that was written to the caller's object."""
    for name in fields:
        setattr(agent, name, getattr(row, name))


def _add_owner_change(write: AgentWrite, owner_id: str) -> None:
    row, actor = write.row, current_change().actor
    write.set(owner_id=owner_id, revision=row.revision + 1, updated_at=timezone.now())
    log.info("The owner of agent %s was changed by %s.", row.pk, actor.pk if actor else "the system")
