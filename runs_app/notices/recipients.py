"""The people who may decide a waiting call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from access_app.role import Role
from agentcms.wire.json_types import JSONObject
from runs_app.models import PendingCall

# The columns of a call on which its deciders depend.
RECIPIENT_COLUMNS = ("owner_id", "role", "requested_by", "four_eyes", "realm_owner")


def find_deciders(calls: QuerySet[PendingCall]) -> list[User]:
    """Return the active users who may decide at least one of the waiting calls."""
    groups = calls.order_by().values(*RECIPIENT_COLUMNS).distinct()
    return [*{user.pk: user for user in _deciders_of_groups(groups)}.values()]


def _deciders_of_groups(groups: Iterable[JSONObject]) -> Iterator[User]:
    for group in groups:
        members = [*members_who_decide(**group)]
        # Superusers decide for every team, so they are only notified of calls that nobody else may decide.
        yield from members or User.objects.filter(is_superuser=True, is_active=True)


def members_who_decide(
    owner_id: str, role: str, requested_by: int | None, four_eyes: bool, realm_owner: str | None = None
) -> QuerySet[User]:
    """Return the members of a team who may decide: publishers, and whoever asked, with at least the role of the call.

    The user of an API key for end users did not ask: its calls show what they said. The function follows
    `PendingCall.objects.decidable_by()`.
    """
    least = max(Role(role), Role.PUBLISHER, key=lambda candidate: candidate.rank)
    may_decide = Q(memberships__owner_id=owner_id, memberships__role__in=Role.at_least(least))
    if requested_by is not None and not four_eyes and realm_owner is None:
        roles = Role.at_least(Role(role))
        may_decide |= Q(pk=requested_by, memberships__owner_id=owner_id, memberships__role__in=roles)
    users = User.objects.filter(may_decide, is_active=True).distinct()
    return users.exclude(pk=requested_by) if four_eyes and requested_by is not None else users
