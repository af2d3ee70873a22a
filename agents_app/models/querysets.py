"""Sets of agents, with the side doors closed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from django.db import models, transaction

from access_app.api_key_cache import recalled_key, still_holds
from access_app.permissions import SHARED, granted_role, may_all, owners
from access_app.role import Role
from agentcms.db.compiled_query import items
from agents_app.configuration import schema

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from agents_app.models import Agent

POINTERS = ("active_version", "head_version", "last_version_number", "revision")


def refuse(door: str, names: Iterable[str]) -> None:
    """Keep a door shut on what only a save or the history may write."""
    named = {name.removesuffix("_id") for name in names}
    if fields := sorted(named & set(schema.FIELDS)):
        raise TypeError(f"{door} would change {', '.join(fields)} without a version. Call save() on each agent.")
    if pointers := sorted(named & set(POINTERS)):
        raise TypeError(f"{door} would move {', '.join(pointers)} past the history. Activate or restore a version.")


def usable_owners(owner_id: str | None) -> tuple[str | None, str]:
    """Whose agents one of this owner may name as sub-agents: its owner's, and those of the shared space."""
    return owner_id, SHARED


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents, with the side doors closed: a change of configuration that leaves no version behind is refused."""

    def for_user(self, user: AbstractBaseUser | AnonymousUser, role: Role = Role.VIEWER) -> Self:
        """The agents for which the caller has at least the role; every queryset that serves a caller begins here."""
        seen = self if may_all(user, role) else self.filter(owner_id__in=owners(user, role))
        return seen.filter(still_holds(user)) if recalled_key(user) else seen

    def among(self, agent_ids: Iterable[str]) -> Self:
        """Those with these ids, however many."""
        return self.among_json(json.dumps(list(agent_ids)))

    def among_json(self, agent_ids: str) -> Self:
        """Those whose ids a JSON list holds."""
        return self.filter(pk__in=items(agent_ids))

    def owners_of(self, agent_ids: Iterable[str]) -> dict[str, str]:
        """Who owns each of these, however many; those that are not there are left out."""
        ids = list(agent_ids)
        return dict(self.among(ids).order_by().values_list("pk", "owner_id")) if ids else {}

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

    def locked(self, agent_id: str) -> Agent:
        """The row as it stands with its two versions, held against other writers until the transaction ends."""
        row = self.select_for_update(of=("self",)).get(pk=agent_id)
        # Not in one statement: one that waited for the lock sees other tables as they were before the wait.
        row.pair_versions()
        return row

    def hold(self) -> list[str]:
        """Their ids, locked in one order against other writers until the transaction ends."""
        return list(self.order_by("pk").select_for_update().values_list("pk", flat=True))

    def delete(self) -> tuple[int, dict[str, int]]:
        with transaction.atomic():
            self.hold()
            return super().delete()

    delete.queryset_only = True  # type: ignore[attr-defined]  # as in Django: a manager alone deletes nothing

    def update(self, **values: Any) -> int:
        refuse("update()", values)
        return super().update(**values)

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        fields = list(fields)
        refuse("bulk_update()", fields)
        return super().bulk_update(objs, fields, batch_size)

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("bulk_create() would make agents without a version. Call save() on each agent.")

    def write(self, **values: Any) -> int:
        """Write columns beneath the guards and without a signal: to move pointers or to hand over, under a lock."""
        return super().update(**values)
