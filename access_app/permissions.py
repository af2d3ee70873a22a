"""Permissions: the role of a user for an owner.

A request with an API key has it as `user.api_key`; no role is higher than that of the key. Without a membership
nothing is allowed.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from django.db import models

from access_app.caller import Caller
from access_app.models import ApiKey, Membership
from access_app.role import Role, RoleRequired

SHARED_OWNER = ""  # the blank owner id; its agents can be used as sub-agents by every owner


class HasGrantedRole(Protocol):
    """A row with the role that its owner granted the caller, as `AgentQuerySet.with_role()` annotates it."""

    owner_id: str
    granted: str | None


def max_role(user: Caller) -> Role:
    """Return the highest role that the request may have: the role of its API key limits it."""
    key: ApiKey | None = getattr(user, "api_key", None)
    return Role(key.role) if key and key.role else Role.MANAGER


def has_role_everywhere(user: Caller, role: Role) -> bool:
    """Return True if the user has the role for every owner."""
    return bool(user.is_active and user.is_superuser and max_role(user).covers(role))


def can_have_role(user: Caller, role: Role) -> bool:
    """Return True if the user could have the role for some owner."""
    return bool(user.is_authenticated and user.is_active and max_role(user).covers(role))


def owner_ids_for(user: Caller, role: Role = Role.VIEWER) -> models.QuerySet[Any, str]:
    """Return the owner ids for which the user has at least the role, as a subquery.

    The memberships decide alone; `has_role_everywhere` covers superusers.
    """
    if not can_have_role(user, role):
        return Membership.objects.none().values_list("owner_id", flat=True)
    # Not limited by the key again: `can_have_role` is true only if its role covers this one.
    granted = Membership.objects.filter(user_id=_user_id(user), role__in=Role.at_least(role))
    return granted.values_list("owner_id", flat=True)


def has_role_somewhere(user: Caller, role: Role) -> bool:
    """Return True if the user has at least the role for some owner."""
    return has_role_everywhere(user, role) or owner_ids_for(user, role).exists()


def granted_role(user: Caller, owner_column: str) -> models.Subquery:
    """Return the role that the owner of a row granted the user, for `annotate`.

    It ignores superusers and API keys; `effective_role` applies them.
    """
    granted = Membership.objects.filter(user_id=_user_id(user), owner_id=models.OuterRef(owner_column))
    return models.Subquery(granted.values("role")[:1])


def _user_id(user: Caller) -> int:
    return cast(int, user.pk)  # None for anonymous callers, who have no membership


def effective_role(user: Caller, granted: str | None) -> Role | None:
    """Return the role that results from a granted one: limited by the API key, and the highest for a superuser."""
    if not can_have_role(user, Role.VIEWER):
        return None
    if user.is_superuser:
        return max_role(user)
    return min(Role(granted), max_role(user), key=lambda role: role.rank) if granted else None


def granted_covers(user: Caller, role: Role, granted: str | None) -> bool:
    """Return True if a granted role is enough for an action that needs the role."""
    effective = effective_role(user, granted)
    return effective is not None and effective.covers(role)


def require_granted_role(user: Caller, role: Role, row: HasGrantedRole, hint: str = "") -> None:
    """Raise RoleRequired unless the annotation `granted` of a row is enough; no query."""
    if not granted_covers(user, role, row.granted):
        raise RoleRequired(role, row.owner_id, hint)


def role_for(user: Caller, owner_id: str) -> Role | None:
    """Return the role of the user for an owner, limited by the API key, or None."""
    # Without a query: neither has a membership that counts.
    if not can_have_role(user, Role.VIEWER) or user.is_superuser:
        return effective_role(user, None)
    granted = (
        Membership.objects.filter(user_id=_user_id(user), owner_id=owner_id).values_list("role", flat=True).first()
    )
    return effective_role(user, granted)


def has_role(user: Caller, role: Role, owner_id: str) -> bool:
    """Return True if the user has at least the role for an owner."""
    granted = role_for(user, owner_id)
    return granted is not None and granted.covers(role)


def require_role(user: Caller, role: Role, owner_id: str, hint: str = "") -> None:
    """Raise RoleRequired unless the user has the role for an owner; `hint` is added to the message."""
    if not has_role(user, role, owner_id):
        raise RoleRequired(role, owner_id, hint)
