"""The four roles, from viewer to manager."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import models


class Role(models.TextChoices):
    """What a member may do for an owner; each role may also do what stands before it."""

    VIEWER = "viewer", "Viewer"
    EDITOR = "editor", "Editor"
    PUBLISHER = "publisher", "Publisher"
    MANAGER = "manager", "Manager"

    @property
    def rank(self) -> int:
        return RANKS[self]

    def covers(self, other: Role) -> bool:
        """Whether this role may do what the other may."""
        return self.rank >= other.rank

    @classmethod
    def at_least(cls, role: Role) -> list[Role]:
        return [each for each in cls if each.covers(role)]


RANKS = {role: rank for rank, role in enumerate(Role)}


class RoleRequired(PermissionDenied):
    """The caller may see the thing but not do this to it."""

    def __init__(self, role: Role, owner_id: str, hint: str = "") -> None:
        self.role = role
        where = f"owner {owner_id}" if owner_id else "the shared space"
        super().__init__(f"This needs the role {role.value} for {where}.{' ' + hint if hint else ''}")
