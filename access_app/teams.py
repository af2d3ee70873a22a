"""Teams: owners and their members."""

from __future__ import annotations

from django.core.exceptions import ValidationError

from access_app.caller import Caller
from access_app.models import Membership
from access_app.permissions import SHARED_OWNER, effective_role, has_role_everywhere, owner_ids_for
from access_app.role import Role


def known_owners(user: Caller, role: Role) -> list[str]:
    """Return the owners for which the user has the role, sorted; the blank owner (Shared) comes first.

    Superusers get all owners that have members.
    """
    if has_role_everywhere(user, role):
        return sorted(
            {SHARED_OWNER, *Membership.objects.order_by("owner_id").values_list("owner_id", flat=True).distinct()}
        )
    return sorted(owner_ids_for(user, role))


def highest_role(user: Caller) -> Role | None:
    """Return the highest role of the user for any owner, or None."""
    if has_role_everywhere(user, Role.VIEWER):
        return effective_role(user, None)
    granted = Membership.objects.filter(user=user.pk).values_list("role", flat=True)
    return effective_role(user, max(granted, key=lambda role: Role(role).rank, default=None))


def managed_owners(user: Caller) -> list[str]:
    """Return the owners whose members the user manages."""
    return known_owners(user, Role.MANAGER)


def can_be_owner(owner_id: str) -> bool:
    """Return True if a membership accepts this owner id."""
    field = Membership._meta.get_field("owner_id")
    try:
        field.run_validators(owner_id)
    except ValidationError:
        return False
    return True


def leaves_team_without_manager(membership: Membership, role: str) -> bool:
    """Return True if the team has no manager after this membership changes to the role, or is deleted for ""."""
    if membership.role != Role.MANAGER or role == Role.MANAGER:
        return False
    others = Membership.objects.filter(owner_id=membership.owner_id, role=Role.MANAGER).exclude(pk=membership.pk)
    return not others.exists()
