"""Changes of the members of teams. The last manager of a team stays, and so does the last superuser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from access_app.caller import Caller
from access_app.models import Membership
from access_app.permissions import require_role
from access_app.role import SHARED_LABEL, Role
from agentcms.db.locks import lock_name

LAST_MANAGER_MESSAGE = "The team {team} needs at least one manager. Add another manager first."
LAST_SUPERUSER_MESSAGE = (
    "At least one active superuser must be staff and have a password. Make another user a superuser and staff first."
)
GONE_MESSAGE = "{user} is no longer a member of {team}: somebody has changed this meanwhile."

OTHER_ROLE_MESSAGE = (
    "Nothing was changed: somebody else gave {user} the {role} role meanwhile. Save again to replace it."
)


@contextmanager
def changing_members(manager: Caller, owner_id: str) -> Iterator[None]:
    """Change the members of a team in one transaction. Raise RoleRequired unless the user manages the team.

    Requests for one team wait for each other, so that of two managers who remove each other only one succeeds.
    """
    with transaction.atomic():
        lock_managed_teams(manager, [owner_id])
        yield


def lock_managed_teams(manager: Caller, owner_ids: Iterable[str]) -> None:
    """Let other changes of the members of teams wait until this transaction ends.

    Raise RoleRequired unless the user manages all of them.
    """
    teams = sorted(set(owner_ids))
    lock_teams(teams)
    for owner_id in teams:
        # After the lock: another manager may have ended the right of this one while it waited.
        require_role(manager, Role.MANAGER, owner_id)


def lock_teams(owner_ids: Iterable[str]) -> None:
    """Let other changes of the members of teams wait until this transaction ends.

    Call this before the lock of a membership or a user, and for all teams at once: two transactions that lock in two
    orders could wait for each other.
    """
    for owner_id in sorted(set(owner_ids)):
        lock_members(owner_id)


def change_role(membership: Membership, role: Role, manager: Caller, seen: str = "") -> str:
    """Give a member another role. Return the one before.

    `seen` is the role that the manager has seen; a blank one is any. Raise ValidationError if the member has another
    one by now, for the last manager of a team, and for a member who has left it.
    """
    with changing_members(manager, membership.owner_id):
        if role != Role.MANAGER:
            reject_loss_of_managers([membership])
        # Under the lock: another manager may have changed it since the membership was read.
        before = stored_membership(membership).values_list("role", flat=True).first()
        if before is None or not stored_membership(membership).update(role=role):
            raise ValidationError(gone_message(membership), code="gone")
        if seen and before not in (seen, role):
            label = dict(Role.choices).get(before, before)
            raise ValidationError(OTHER_ROLE_MESSAGE.format(user=membership.user, role=label), code="other_role")
    membership.role = role
    return before


def remove_member(membership: Membership, manager: Caller) -> None:
    """Remove a member from a team. Raise ValidationError for the last manager, and for a former member."""
    with changing_members(manager, membership.owner_id):
        reject_loss_of_managers([membership])
        if not stored_membership(membership).delete()[0]:
            raise ValidationError(gone_message(membership), code="gone")


def stored_membership(membership: Membership) -> QuerySet[Membership]:
    """Return the row of a membership, unless it was deleted or belongs to another team by now."""
    return Membership.objects.filter(pk=membership.pk, owner_id=membership.owner_id)


def gone_messages(memberships: Iterable[Membership]) -> list[str]:
    """Return a message for each membership that was deleted or moved to another team since it was read."""
    return [gone_message(membership) for membership in memberships if not stored_membership(membership).exists()]


def gone_message(membership: Membership) -> str:
    return GONE_MESSAGE.format(user=membership.user, team=membership.owner_id or SHARED_LABEL)


def last_manager_message(membership: Membership) -> str:
    """Return why a member cannot be removed: as the last active manager of the team. Otherwise return ""."""
    managers = Membership.objects.filter(owner_id=membership.owner_id, role=Role.MANAGER, user__is_active=True)
    # Two are enough to know whether there is another one.
    if list(managers.values_list("pk", flat=True)[:2]) != [membership.pk]:
        return ""
    return LAST_MANAGER_MESSAGE.format(team=membership.owner_id or SHARED_LABEL)


def reject_loss_of_managers(memberships: Iterable[Membership]) -> None:
    """Raise ValidationError if a team would have no active manager without these memberships.

    Call this in the transaction that ends them. Other callers for the same team wait until it ends, so that two
    managers cannot remove each other.
    """
    leaving: dict[str, set[int]] = {}
    for membership in memberships:
        leaving.setdefault(membership.owner_id, set()).add(membership.pk)
    messages = []
    for owner_id in sorted(leaving):  # in one order, or two callers could wait for each other
        managers = lock_managers(owner_id)
        if managers and managers <= leaving[owner_id]:
            messages.append(LAST_MANAGER_MESSAGE.format(team=owner_id or SHARED_LABEL))
    if messages:
        raise ValidationError(messages, code="last_manager")


def reject_loss_of_superusers(users: Iterable[AbstractBaseUser]) -> None:
    """Raise ValidationError if without these superusers nobody could add users in the admin.

    Call this in the transaction that deletes, deactivates or demotes them. Other callers wait until it ends.
    """
    lock_name("superusers")
    superusers = get_user_model().objects.filter(is_superuser=True, is_staff=True, is_active=True)
    superusers = superusers.exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    remaining = superusers.exclude(pk__in=[user.pk for user in users])
    if superusers.exists() and not remaining.exists():
        raise ValidationError(LAST_SUPERUSER_MESSAGE, code="last_superuser")


def lock_members(owner_id: str) -> None:
    """Let other changes of the members of a team wait until this transaction ends."""
    # A name, not the rows: the lock must also hold for a manager who is added meanwhile.
    lock_name(f"managers of {owner_id}")


def lock_managers(owner_id: str) -> set[int]:
    """Lock the members of a team. Return the keys of the memberships of its active managers."""
    lock_members(owner_id)
    managers = Membership.objects.filter(owner_id=owner_id, role=Role.MANAGER, user__is_active=True)
    return set(managers.values_list("pk", flat=True))
