"""The queryset of agents, which refuses writes that would leave no version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from django.db import connection, models, transaction
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTextTransform

from access_app.caller import Caller
from access_app.permissions import SHARED_OWNER, granted_role, has_role_everywhere, owner_ids_for
from access_app.role import Role
from agentcms.db.statements.parameters import json_array_items
from agents_app.configuration import schema
from agents_app.configuration.references import StoredAgents
from agents_app.editing.saving import agents_deleting

if TYPE_CHECKING:
    from agents_app.models import Agent

POINTER_FIELDS = ("active_version", "head_version", "last_version_number", "revision")


def reject_direct_write(method: str, names: Iterable[str]) -> None:
    """Raise TypeError for fields that only a save or the history may write."""
    fields = {name.removesuffix("_id") for name in names}
    if configuration := sorted(fields & {*schema.FIELDS}):
        changed = ", ".join(configuration)
        raise TypeError(f"{method} would change {changed} without a version. Call save() on each agent.")
    if pointers := sorted(fields & {*POINTER_FIELDS}):
        moved = ", ".join(pointers)
        raise TypeError(f"{method} would move {moved} past the history. Activate or restore a version.")


def usable_owners(owner_id: str | None) -> tuple[str | None, str]:
    """Return the owners whose agents an agent of this owner may use as sub-agents."""
    return owner_id, SHARED_OWNER


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents. Bulk writes of configuration and pointers raise TypeError."""

    def for_user(self, user: Caller, role: Role = Role.VIEWER) -> Self:
        """Return the agents for which the caller has at least the role. Every queryset for a caller starts here."""
        return self if has_role_everywhere(user, role) else self.filter(owner_id__in=owner_ids_for(user, role))

    def referring_to(self, field: str, part: str) -> Self:
        """Return the agents whose live version or draft has a text such as '"key"' in its references of a field."""
        live = KeyTextTransform(field, "active_version__references")
        head = KeyTextTransform(field, "head_version__references")
        rows = self.annotate(live_references=live, head_references=head)
        return rows.filter(models.Q(live_references__contains=part) | models.Q(head_references__contains=part))

    def using_row(self, field: str, key: str, owner_id: str) -> Self:
        """Return the agents whose live version or draft names this row of an owner in a field, and may use it."""
        agents = self.referring_to(field, f'"{key}"')
        # Agents of other teams may name the same key, but it does not resolve to this row.
        return agents if owner_id == SHARED_OWNER else agents.filter(owner_id=owner_id)

    def with_ids(self, agent_ids: Iterable[str]) -> Self:
        """Return the agents with these IDs, however many."""
        return self.filter(pk__in=json_array_items(agent_ids))

    def owners_of(self, agent_ids: Iterable[str]) -> dict[str, str]:
        """Return the owner of each of these agents that is in the queryset, however many."""
        ids = list(agent_ids)
        return dict(self.with_ids(ids).order_by().values_list("pk", "owner_id")) if ids else {}

    def names_of(self, agent_ids: Iterable[str]) -> dict[str, str]:
        """Return the name of each of these agents. The name of one that is not in the queryset is its ID."""
        ids = list(agent_ids)
        known = dict(self.with_ids(ids).order_by().values_list("pk", "name")) if ids else {}
        return {agent_id: known.get(agent_id, agent_id) for agent_id in ids}

    def without_archived(self) -> Self:
        return self.filter(archived_at__isnull=True)

    def archived(self) -> Self:
        return self.filter(archived_at__isnull=False)

    def with_tool(self, key: str) -> Self:
        """Return the agents that have a tool or an integration tool with this key, also in a variant of the tools."""
        if connection.vendor == "postgresql":
            in_variants = models.Q(conditional__tools__contains=[{"value": [key]}])
            is_own = models.Q(tools__contains=[key]) | models.Q(integration_tools__contains=[key])
            return self.filter(is_own | in_variants)
        table = self.model._meta.db_table
        having = (
            f"SELECT a.id FROM {table} a WHERE EXISTS (SELECT 1 FROM json_each(a.tools) e WHERE e.value = %s)"  # noqa: S608
            " OR EXISTS (SELECT 1 FROM json_each(a.integration_tools) e WHERE e.value = %s)"
            " OR EXISTS (SELECT 1 FROM json_each(a.conditional, '$.tools') v, json_each(v.value, '$.value') e"
            " WHERE e.value = %s)"
        )
        return self.filter(pk__in=RawSQL(having, [key, key, key]))  # noqa: S611

    def usable_by(self, owner_id: str) -> Self:
        """Return the agents that an agent of this owner may use as sub-agents."""
        return self.without_archived().of_usable_owners(owner_id)

    def of_usable_owners(self, owner_id: str) -> Self:
        """Return the agents that an agent of this owner may use, or could use if they were not archived."""
        return self.filter(owner_id__in=usable_owners(owner_id))

    def stored_among(self, references: Mapping[str, tuple[str, Iterable[str]]]) -> dict[str, StoredAgents]:
        """Return the sub-agents that each agent may use or could use if they were not archived.

        `references` has the owner and the sub-agents of each agent.
        """
        ids = {key for _, keys in references.values() for key in keys}
        usable: dict[str, str] = {}
        archived: dict[str, str] = {}
        columns = self.with_ids(ids).order_by().values_list("pk", "owner_id", "archived_at")
        for agent_id, owner_id, archived_at in columns if ids else ():
            (archived if archived_at else usable)[agent_id] = owner_id

        def keys_of(owners: Mapping[str, str], owner_id: str, keys: Iterable[str]) -> tuple[str, ...]:
            return tuple(key for key in keys if owners.get(key) in usable_owners(owner_id))

        return {
            agent_id: StoredAgents(keys_of(usable, owner_id, keys), keys_of(archived, owner_id, keys), owner_id)
            for agent_id, (owner_id, keys) in references.items()
        }

    def with_versions(self) -> Self:
        """Load the live and head versions in the same query."""
        return self.select_related("active_version", "head_version")

    def with_role(self, user: Caller) -> Self:
        """Annotate `granted`, the role that the owner granted the caller, for `require_granted_role()`."""
        return self.annotate(granted=granted_role(user, "owner_id"))

    def get_locked(self, agent_id: str) -> Agent:
        """Lock a row until the transaction ends and return it. Its versions load when they are used."""
        # Without a join: a statement that waited for the lock reads other tables as they were before the wait.
        # Not exclusively: rows that refer to the agent, such as those of runs, may be stored meanwhile.
        row = self.select_for_update(of=("self",), no_key=True).get(pk=agent_id)
        row.share_live_head()
        return row

    def lock_ids(self) -> list[str]:
        """Lock these rows until the transaction ends, in the order of their IDs, and return the IDs."""
        # In one order, or two transactions could wait for each other.
        return list(self.order_by("pk").select_for_update().values_list("pk", flat=True))

    def lock_to_delete(self) -> None:
        """Lock these rows exclusively: no version and nothing else that refers to them is added from here on."""
        agents_deleting.send(self.model, ids=list(self.order_by("pk").values_list("pk", flat=True)))
        self.lock_ids()

    def delete(self) -> tuple[int, dict[str, int]]:
        with transaction.atomic():
            self.lock_to_delete()
            return super().delete()

    delete.queryset_only = True  # type: ignore[attr-defined]  # as in Django: a manager has no delete()

    def update(self, **values: Any) -> int:
        reject_direct_write("update()", values)
        return super().update(**values)

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        # Before the check, which would use up an iterator.
        fields = list(fields)
        reject_direct_write("bulk_update()", fields)
        return super().bulk_update(objs, fields, batch_size)

    def bulk_create(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("bulk_create() would create agents without a version. Call save() on each agent.")

    def update_unguarded(self, **values: Any) -> int:
        """Update any columns without a check, a version or a signal. The caller holds the lock."""
        return super().update(**values)

    def insert_unguarded(self, agent: Agent) -> None:
        """Insert a row without a check, a version or a signal. Its values may be expressions."""
        rows: list[Any] = [agent]
        # That of Django, which sends no signals.
        super().bulk_create(rows)
