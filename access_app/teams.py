"""The teams of a user."""

from __future__ import annotations

from collections.abc import Sized

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from access_app.caller import Caller
from access_app.models import Membership
from access_app.permissions import SHARED_OWNER, effective_role, has_role_everywhere, owner_ids_for
from access_app.role import SHARED_LABEL, Role

MAX_OFFERED_TEAMS = 500  # a select of more would make the page slow, and each form of an inline has its own
TEAM_PLACEHOLDER = "ID of the team, or nothing for Shared"


def known_owners(user: Caller, role: Role) -> list[str]:
    """Return the owners for which the user has the role, sorted; the blank owner (Shared) comes first.

    Superusers get all owners that have members.
    """
    if has_role_everywhere(user, role):
        return sorted(
            {SHARED_OWNER, *Membership.objects.order_by("owner_id").values_list("owner_id", flat=True).distinct()}
        )
    return sorted(owner_ids_for(user, role))


def team_choices(user: Caller, role: Role, *others: str) -> list[tuple[str, str]]:
    """Return the teams for which the user has the role, and others, as choices of a form. Shared comes first."""
    return [(owner, owner or SHARED_LABEL) for owner in sorted({*known_owners(user, role), *others})]


def can_be_offered(teams: Sized) -> bool:
    """Return whether a form can offer these teams in a select. It asks for the ID of one of very many."""
    return len(teams) <= MAX_OFFERED_TEAMS


def highest_role(user: Caller) -> Role | None:
    """Return the highest role of the user for any owner, or None."""
    if has_role_everywhere(user, Role.VIEWER):
        return effective_role(user, None)
    granted = Membership.objects.filter(user=user.pk).values_list("role", flat=True)
    return effective_role(user, max(granted, key=lambda role: Role(role).rank, default=None))


def managed_owners(user: Caller) -> list[str]:
    """Return the owners whose members the user manages."""
    return known_owners(user, Role.MANAGER)


def managed_memberships(user: Caller) -> QuerySet[Membership]:
    """Return the memberships that the user manages."""
    if has_role_everywhere(user, Role.MANAGER):
        return Membership.objects.all()
    return Membership.objects.filter(owner_id__in=owner_ids_for(user, Role.MANAGER))


def can_be_owner(owner_id: str) -> bool:
    """Return True if a membership accepts this owner id."""
    field = Membership._meta.get_field("owner_id")
    try:
        field.run_validators(owner_id)
    except ValidationError:
        return False
    return True
