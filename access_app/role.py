"""The four roles, from viewer to manager."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import models


class Role(models.TextChoices):
    """The role of a member in a team. Each role includes the permissions of the roles before it."""

    VIEWER = "viewer", "Viewer"
    EDITOR = "editor", "Editor"
    PUBLISHER = "publisher", "Publisher"
    MANAGER = "manager", "Manager"

    @property
    def rank(self) -> int:
        """The position of the role, from the lowest."""
        return RANKS[self]

    def covers(self, other: Role) -> bool:
        """Return True if this role is the other one or higher."""
        return self.rank >= other.rank

    @classmethod
    def at_least(cls, role: Role) -> list[Role]:
        """Return the role and all higher ones."""
        return [candidate for candidate in cls if candidate.covers(role)]


RANKS = {role: rank for rank, role in enumerate(Role)}
SHARED_LABEL = "Shared"  # the name of the blank owner on pages


class RoleRequired(PermissionDenied):
    """The user may see the agent but has not the role for this action. `hint` names an alternative.

    Without an owner, any team would do.
    """

    def __init__(self, role: Role, owner_id: str | None, hint: str = "") -> None:
        self.role = role
        team = "a team" if owner_id is None else owner_id or SHARED_LABEL
        message = f"This needs the {role.label} role in {team}."
        super().__init__(f"{message} {hint}" if hint else message)
