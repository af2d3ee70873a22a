"""Querysets of rows that belong to a team or are shared."""

from __future__ import annotations

from typing import Self, TypeVar

from django.db import models
from django.db.models import Exists, Q

from access_app.caller import Caller
from access_app.permissions import SHARED_OWNER, can_have_role, granted_role, has_role_everywhere, owner_ids_for
from access_app.role import Role

Row = TypeVar("Row", bound=models.Model)


class OwnedQuerySet(models.QuerySet[Row]):
    """Rows with an `owner_id`. Everybody with a team sees the shared ones."""

    def for_user(self, user: Caller) -> Self:
        """Filter to the rows of the user's teams and the shared ones."""
        if has_role_everywhere(user, Role.VIEWER):
            return self
        if not can_have_role(user, Role.VIEWER):
            return self.none()
        memberships = owner_ids_for(user)
        return self.filter(Q(owner_id__in=memberships) | Q(Exists(memberships), owner_id=SHARED_OWNER))

    def with_role(self, user: Caller) -> Self:
        """Annotate the role that the owner of each row granted the user, as `granted`."""
        return self.annotate(granted=granted_role(user, "owner_id"))

    def usable_by(self, owner_id: str) -> Self:
        """Filter to the rows that agents of this owner may use."""
        return self.filter(owner_id__in={SHARED_OWNER, owner_id})
