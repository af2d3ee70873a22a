"""Sets of agents, with the side doors closed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from django.db import models, transaction

from access_app.permissions import SHARED_OWNER, granted_role, has_role_everywhere, owner_ids_for
from access_app.role import Role
from agentcms.db.compiled_query import json_array_items
from agents_app.configuration import schema

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from agents_app.models import Agent

POINTERS = ("active_version", "head_version", "last_version_number", "revision")


def reject_direct_write(door: str, names: Iterable[str]) -> None:
    """Keep a door shut on what only a save or the history may write."""
    named = {name.removesuffix("_id") for name in names}
    if fields := sorted(named & set(schema.FIELDS)):
        raise TypeError(f"{door} would change {', '.join(fields)} without a version. Call save() on each agent.")
    if pointers := sorted(named & set(POINTERS)):
        raise TypeError(f"{door} would move {', '.join(pointers)} past the history. Activate or restore a version.")


def usable_owners(owner_id: str | None) -> tuple[str | None, str]:
    """Whose agents one of this owner may name as sub-agents: its owner's, and those of the shared space."""
    return owner_id, SHARED_OWNER


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents, with the side doors closed: a change of configuration that leaves no version behind is refused."""

    def for_user(self, user: AbstractBaseUser | AnonymousUser, role: Role = Role.VIEWER) -> Self:
        """The agents for which the caller has at least the role; every queryset that serves a caller begins here."""
        return self if has_role_everywhere(user, role) else self.filter(owner_id__in=owner_ids_for(user, role))

    def with_ids(self, agent_ids: Iterable[str]) -> Self:
        """Those with these ids, however many."""
        return self.with_ids_json(json.dumps(list(agent_ids)))

    def with_ids_json(self, agent_ids: str) -> Self:
        """Those whose ids a JSON list holds."""
        return self.filter(pk__in=json_array_items(agent_ids))

    def owners_of(self, agent_ids: Iterable[str]) -> dict[str, str]:
        """Who owns each of these, however many; those that are not there are left out."""
        ids = list(agent_ids)
        return dict(self.with_ids(ids).order_by().values_list("pk", "owner_id")) if ids else {}

    def usable_by(self, owner_id: str) -> Self:
        """Those that an agent of this owner may name as sub-agents."""
        return self.filter(owner_id__in=usable_owners(owner_id))

    def usable_among(self, named: Mapping[str, tuple[str, Iterable[str]]]) -> dict[str, tuple[str, ...]]:
        """By agent, those it may use of the keys that it names; `named` has the owner and the keys of each."""
        owners = self.owners_of({key for _, keys in named.values() for key in keys})
        return {
            agent_id: tuple(key for key in keys if owners.get(key) in usable_owners(owner_id))
            for agent_id, (owner_id, keys) in named.items()
        }

    def with_versions(self) -> Self:
        """Each with its live and its head version, in the same query."""
        return self.select_related("active_version", "head_version")

    def with_role(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Each with the role its owner granted the caller, as `granted`: what `require_granted` reads."""
        return self.annotate(granted=granted_role(user, "owner_id"))

    def get_locked(self, agent_id: str) -> Agent:
        """The row as it stands with its two versions, held against other writers until the transaction ends."""
        row = self.select_for_update(of=("self",)).get(pk=agent_id)
        # Not in one statement: one that waited for the lock sees other tables as they were before the wait.
        row.share_live_head()
        return row

    def lock_ids(self) -> list[str]:
        """Their ids, locked in one order against other writers until the transaction ends."""
        return list(self.order_by("pk").select_for_update().values_list("pk", flat=True))

    def delete(self) -> tuple[int, dict[str, int]]:
        with transaction.atomic():
            self.lock_ids()
            return super().delete()

    delete.queryset_only = True  # type: ignore[attr-defined]  # as in Django: a manager alone deletes nothing

    def update(self, **values: Any) -> int:
        reject_direct_write("update()", values)
        return super().update(**values)

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        fields = list(fields)
        reject_direct_write("bulk_update()", fields)
        return super().bulk_update(objs, fields, batch_size)

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("bulk_create() would make agents without a version. Call save() on each agent.")

    def update_unguarded(self, **values: Any) -> int:
        """Write columns beneath the guards and without a signal: to move pointers or to hand over, under a lock."""
        return super().update(**values)

    def insert_unguarded(self, agent: Agent) -> None:
        """Insert a row beneath the guards and without a signal; its columns may be expressions."""
        rows: list[Any] = [agent]
        super().bulk_create(rows)
