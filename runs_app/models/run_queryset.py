"""The queryset of runs: who may read which, and in which state they are."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from access_app.caller import Caller
from access_app.permissions import granted_role, has_role, has_role_everywhere, owner_ids_for
from access_app.role import Role
from memory_app.models.thread import joined_threads
from memory_app.realms import owner_realm, served_owner, user_realm

if TYPE_CHECKING:
    from runs_app.models import AgentRun


class AgentRunQuerySet(models.QuerySet["AgentRun"]):
    model: type[AgentRun]

    def for_user(self, user: Caller) -> Self:
        """Filter to the runs that a user may read: their own, and those of owners for which they may publish.

        An API key for the end users of an owner reads what it asked for in their realm, and nothing outside of it.
        An API key for one resource reads the runs of that resource only, without their child runs.
        Child runs of their own runs need a role for the owner, because they show how its agents work.
        """
        # Authentication of the API sets the key. Users of pages have none.
        key, served = getattr(user, "api_key", None), served_owner(user)
        if served is not None and not has_role(user, Role.EDITOR, served):
            return self.none()
        if key is not None and key.resource:
            realm = user_realm(user.pk or 0) if served is None else owner_realm(served)
            runs = self.filter(resource__realm=realm, resource__key=key.resource, requested_by=user)
            return runs.filter(parent=None)
        has_role_for_owner = Q(parent=None) | Q(owner_id__in=owner_ids_for(user))
        if served is not None:
            return self.filter(has_role_for_owner, requested_by=user, realm_owner=served)
        if has_role_everywhere(user, Role.PUBLISHER):
            return self
        if not (user.is_authenticated and user.is_active):
            return self.none()
        in_reach = Q(realm_owner=None) | Q(thread__in=joined_threads(user))
        own = Q(requested_by=user) & in_reach & has_role_for_owner
        return self.filter(own | Q(owner_id__in=owner_ids_for(user, Role.PUBLISHER)))

    def with_roles(self, user: Caller) -> Self:
        """Annotate the roles on which `details_visible_to` and `configuration_visible_to` decide."""
        return self.annotate(
            granted=granted_role(user, "owner_id"), granted_for_agent=granted_role(user, "agent_owner_id")
        )

    def without_large_columns(self) -> Self:
        """Defer the columns that may be large. Lists do not display them."""
        return self.defer("stored_configuration", "conversation", "input", "output", "warnings")

    def unfinished(self) -> Self:
        return self.filter(status__in=self.model.UNFINISHED_STATUSES, finished_at=None)

    def with_status(self, status: str) -> Self:
        """Filter to the runs with a status."""
        # Finished runs are most. Those of the other statuses are found by an index of the time of the end.
        is_unfinished = status in self.model.UNFINISHED_STATUSES
        return self.filter(status=status, **({"finished_at": None} if is_unfinished else {}))

    def leased(self) -> Self:
        """Filter to the runs that a process executes, or that wait for one."""
        # Both columns are conditions of the small index of these runs, as in `unfinished`.
        return self.filter(status__in=self.model.LEASED_STATUSES, finished_at=None, suspended_at=None)

    def in_trees_of(self, run_ids: Collection[UUID] | models.QuerySet[Any, Any]) -> Self:
        """Filter to first runs and to all runs below them, which are deleted with them."""
        return self.filter(Q(pk__in=run_ids) | Q(root_id__in=run_ids))

    def lock_in_order(self, *, skip_locked: bool = False) -> set[UUID]:
        """Lock these runs in the order of their IDs, as everybody does who locks several, and return their IDs."""
        rows = self.order_by("pk").select_for_update(of=("self",), skip_locked=skip_locked)
        return {*rows.values_list("pk", flat=True)}

    def with_expired_lease(self) -> Self:
        """Filter to unfinished runs whose process has died."""
        return self.leased().filter(lease_until__lt=Now())  # the clocks of two machines may differ

    def suspended(self) -> Self:
        """Filter to the runs that wait for people."""
        # Its time is the condition of the small index of these runs. Without it, a query reads all runs.
        return self.filter(status=self.model.Status.SUSPENDED, suspended_at__isnull=False)

    def queued(self) -> Self:
        """Filter to the durable runs that wait for a process."""
        return self.filter(status=self.model.Status.QUEUED, is_durable=True, finished_at=None, suspended_at=None)
