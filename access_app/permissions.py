"""The questions every door asks: which owners may this caller see, edit, publish for?

A caller is a Django user. One who came with an API key carries it as `user.api_key`, and every role is cut to the
key's. Where nothing grants, nothing is allowed.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from access_app.models import ApiKey, Membership
from access_app.role import Role, RoleRequired

SHARED_OWNER = ""  # the blank owner id: the space that everybody's memberships may name


def max_role(user: Any) -> Role:
    """The highest role the caller may act with: a key may be cut below its user."""
    key: ApiKey | None = getattr(user, "api_key", None)
    return Role(key.role) if key and key.role else Role.MANAGER


def has_role_everywhere(user: Any, role: Role) -> bool:
    """Whether the caller has the role for every owner there is."""
    return bool(user.is_active and user.is_superuser and max_role(user).covers(role))


def can_have_role(user: Any, role: Role) -> bool:
    """Whether the caller could have the role anywhere at all."""
    return bool(user.is_authenticated and user.is_active and max_role(user).covers(role))


def owner_ids_for(user: Any, role: Role = Role.VIEWER) -> models.QuerySet[Any, str]:
    """The owner ids for which the caller has at least the role, as a subquery. Superusers are asked by `may_all`."""
    if not can_have_role(user, role):
        return Membership.objects.none().values_list("owner_id", flat=True)
    granted = Membership.objects.filter(user_id=user.pk, role__in=Role.at_least(role))
    return granted.values_list("owner_id", flat=True)


def granted_role(user: Any, owner_column: str) -> models.Subquery:
    """The role that a row's owner granted the caller, for `annotate`; superusers and keys are asked afterwards."""
    granted = Membership.objects.filter(user_id=user.pk, owner_id=models.OuterRef(owner_column))
    return models.Subquery(granted.values("role")[:1])


def effective_role(user: Any, granted: str | None) -> Role | None:
    """The role a caller acts with where this was granted: cut to its key, and a superuser's everywhere."""
    if not can_have_role(user, Role.VIEWER):
        return None
    if user.is_superuser:
        return max_role(user)
    return min(Role(granted), max_role(user), key=lambda role: role.rank) if granted else None


def granted_covers(user: Any, role: Role, granted: str | None) -> bool:
    """Whether a caller may do what needs the role where this was granted."""
    effective = effective_role(user, granted)
    return effective is not None and effective.covers(role)


def require_granted_role(user: Any, role: Role, row: Any, hint: str = "") -> None:
    """`require_role` for a row that carries what its owner granted, as `granted`, so that nothing is asked again."""
    if not granted_covers(user, role, row.granted):
        raise RoleRequired(role, row.owner_id, hint)


def role_for(user: Any, owner_id: str) -> Role | None:
    """The caller's role for an owner, cut to its key, or None."""
    if not can_have_role(user, Role.VIEWER) or user.is_superuser:
        return effective_role(user, None)
    granted = Membership.objects.filter(user_id=user.pk, owner_id=owner_id).values_list("role", flat=True).first()
    return effective_role(user, granted)


def has_role(user: Any, role: Role, owner_id: str) -> bool:
    """Whether the caller has at least the role for an owner."""
    granted = role_for(user, owner_id)
    return granted is not None and granted.covers(role)


def require_role(user: Any, role: Role, owner_id: str, hint: str = "") -> None:
    """Refuse a caller who lacks the role for an owner; `hint` names another way to get there."""
    if not has_role(user, role, owner_id):
        raise RoleRequired(role, owner_id, hint)
