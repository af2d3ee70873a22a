"""The agent: a row that is always the picture of its head version."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from django.db import DatabaseError, models, transaction
from django.utils import timezone

from access_app.roles import Role, granted_role, may_all, owners
from agentcms.ids import random_key
from agentcms.wire import canonical
from agents_app import shapes
from agents_app.changes import change, current

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    AgentVersion = Any  # this module does not know the history; the database does

log = logging.getLogger(__name__)

POINTERS = ("active_version", "head_version", "last_version_number", "revision")
EDITABLE = (*shapes.FIELDS, "owner_id")


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents, with the side doors closed: a change of configuration that leaves no version behind is refused."""

    def for_user(self, user: AbstractBaseUser | AnonymousUser, role: Role = Role.VIEWER) -> Self:
        """The agents for which the caller has at least the role; every queryset that serves a caller begins here."""
        return self if may_all(user, role) else self.filter(owner_id__in=owners(user, role))

    def with_versions(self) -> Self:
        """Each with its live and its head version, in the same query."""
        return self.select_related("active_version", "head_version")

    def with_role(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Each with the role its owner granted the caller, as `granted`: what `effective_role` reads."""
        return self.annotate(granted=granted_role(user, "owner_id"))

    def locked(self, agent_id: str) -> Agent:
        """The row as it stands with its two versions, held against other writers until the transaction ends."""
        row = self.select_for_update(of=("self",)).get(pk=agent_id)
        # Not in one statement: one that waited for the lock sees other tables as they were before the wait.
        if row.head_version_id is not None and row.head_version_id == row.active_version_id:
            row.head_version = row.active_version
        return row

    def update(self, **values: Any) -> int:
        if fields := sorted({name.removesuffix("_id") for name in values} & set(shapes.FIELDS)):
            raise TypeError(f"update() would change {', '.join(fields)} without a version. Call save() on each agent.")
        return super().update(**values)

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        fields = list(fields)
        if named := sorted(set(fields) & set(shapes.FIELDS)):
            raise TypeError(
                f"bulk_update() would change {', '.join(named)} without a version. Call save() on each agent."
            )
        return super().bulk_update(objs, fields, batch_size)

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("bulk_create() would make agents without a version. Call save() on each agent.")

    def write(self, **values: Any) -> int:
        """Write columns beneath the guards and without a signal; only the history calls it, as it moves pointers."""
        return super().update(**values)


class Agent(models.Model):
    """An AI agent as its team keeps it: instructions, model and everything else that makes it what it is."""

    id = models.CharField(primary_key=True, max_length=128)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    instructions = models.TextField(blank=True)
    model = models.JSONField(help_text='{"provider": …, "name": …} and the settings of the model.')
    tools = models.JSONField(default=list, blank=True)
    default_options = models.JSONField(default=dict, blank=True)
    workflows = models.JSONField(default=list, blank=True)
    agents = models.JSONField("sub-agents", default=list, blank=True)
    integration_tools = models.JSONField(default=list, blank=True, help_text="Keys such as provider_toolkit_tool.")
    input_processors = models.JSONField(default=list, blank=True)
    output_processors = models.JSONField(default=list, blank=True)
    memory = models.CharField(max_length=256, null=True, blank=True)
    scorers = models.JSONField(default=dict, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    owner_id = models.CharField("owner", max_length=128, blank=True, default="", db_index=True)

    # The database knows the history; this module does not import it.
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

    _stored_owner_id: str | None = None

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at", "id"]
        indexes: ClassVar = [
            models.Index(fields=["-created_at", "id"], name="agent_created"),
            models.Index(fields=["-updated_at", "id"], name="agent_updated"),
            models.Index(fields=["name", "id"], name="agent_name"),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *, update_fields: Iterable[str] | None = None, using: str | None = None, **unused: Any) -> None:
        """Validate and write; the history follows in the same transaction, so that both land or neither.

        An agent that was read before writes its configuration only: a stale copy moves no pointer, hands the agent
        to nobody and revives nothing. Raises Agent.DoesNotExist where the row vanished meanwhile.
        """
        fields = self._fields_to_save(update_fields)
        with transaction.atomic(using):
            if self._state.adding:
                self.clean()
                super().save(force_insert=True, using=using)
                self._stored_owner_id = self.owner_id
                return
            self._write(fields, using)
            if self.owner_id != self._stored_owner_id:
                self.hand_over(self.owner_id)

    @classmethod
    def from_db(cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any) -> Self:
        agent = super().from_db(db, field_names, values, **options)
        agent._stored_owner_id = agent.__dict__.get("owner_id")
        return agent

    def clean(self) -> None:
        """Ask the one shape. Raises ShapeError, a ValidationError by field with wire paths beside it."""
        super().clean()
        body = {**shapes.to_body(vars(self)), "id": self.pk, "ownerId": self.owner_id}
        shapes.read_new_agent(body)

    def _fields_to_save(self, named: Iterable[str] | None) -> list[str]:
        fields = list(named) if named is not None else list(EDITABLE)
        if closed := sorted(set(fields) - set(EDITABLE)):
            raise TypeError(f"save() does not write {', '.join(closed)}: pointers and times move with the history.")
        deferred = self.get_deferred_fields()
        return [name for name in fields if name != "owner_id" and name not in deferred]

    def _write(self, fields: Iterable[str], using: str | None = None) -> None:
        """Write the named fields of an existing row; the history follows. The caller holds the transaction."""
        self.clean()
        try:
            super().save(force_update=True, update_fields=fields, using=using)
        except DatabaseError as error:
            if type(error) is DatabaseError or type(error).__name__ == "NotUpdated":  # no row took the update
                raise Agent.DoesNotExist(f"Agent {self.pk} was deleted meanwhile.") from error
            raise

    def edit(self, fields: dict[str, Any]) -> AgentVersion | None:
        """Change the named configuration fields, starting from what the change asks to start from.

        What goes live starts from what is live: with a draft ahead, a publishing edit leaves the draft alone.
        An edit equal to what it starts from writes nothing. Returns the version made, if any.
        """
        with transaction.atomic():
            row = Agent.objects.locked(self.pk)
            version = row.edit_locked(fields)
        self.become(row)
        return version

    def edit_locked(self, fields: dict[str, Any]) -> AgentVersion | None:
        """`edit` for a row that came from `locked()` in this very transaction."""
        if self.active_version and self.has_draft and current().publish:
            return self.active_version.amend_locked(self, fields)
        if not self.differs(fields):
            return None
        for name, value in fields.items():
            setattr(self, name, value)
        self._write(fields)
        return self.head_version

    def become(self, row: Agent) -> None:
        """Show what another object of the same row shows."""
        for field in self._meta.concrete_fields:
            setattr(self, field.attname, getattr(row, field.attname))
        self._state.fields_cache = dict(row._state.fields_cache)
        self._stored_owner_id = row._stored_owner_id

    def differs(self, fields: dict[str, Any]) -> bool:
        """Whether any of the named values is another JSON value than the row's."""
        return any(canonical(value) != canonical(getattr(self, name)) for name, value in fields.items())

    def hand_over(self, owner_id: str) -> None:
        """Give the agent to another owner: no version, because a snapshot says nothing of owners."""
        with transaction.atomic():
            row = Agent.objects.locked(self.pk)
            if row.owner_id != owner_id:
                row.owner_id = owner_id
                row.clean()
                row.revision, row.updated_at = row.revision + 1, timezone.now()
                Agent.objects.filter(pk=row.pk).write(
                    owner_id=owner_id, revision=row.revision, updated_at=row.updated_at
                )
                actor = current().actor
                log.info("Agent %s was handed over by %s.", row.pk, actor.pk if actor else "the system")
        for name in ("owner_id", "revision", "updated_at"):
            setattr(self, name, getattr(row, name))
        self._stored_owner_id = owner_id

    def duplicate(self, agent_id: str, owner_id: str, version: AgentVersion, name: str | None = None) -> Agent:
        """A new agent with the configuration of one of this one's versions, and a history of its own."""
        fields = deepcopy(self.resolved(version))
        if name is not None:
            fields["name"] = name
        copy = Agent(id=agent_id, owner_id=owner_id, **fields)
        with change(message=f"Duplicated from {self.pk} version {version.version_number}"):
            copy.save()
        return copy

    @property
    def snapshot_text(self) -> str:
        """The configuration as canonical JSON under wire names: what a version of this row holds."""
        return canonical(shapes.to_body(vars(self)))

    @property
    def has_draft(self) -> bool:
        """Whether the head says something else than what is live."""
        head, live = self.head_version, self.active_version
        return head is not None and live is not None and head.snapshot_hash != live.snapshot_hash

    def resolved(self, version: Any = None) -> dict[str, Any]:
        """The configuration of a version, the live one by default, by Python name."""
        version = version or self.active_version
        return {name: version.snapshot[wire] for name, wire in shapes.WIRE_NAMES.items()}

    @property
    def etag(self) -> str:
        """Names this state of the agent; an id that was deleted and made again is another agent."""
        return f"{self.row_key}.{self.revision}"
