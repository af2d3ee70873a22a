"""The versions of a draft, which publishing it makes live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from access_app.caller import Caller
from agents_app.models import Agent
from versions_app.models import Activation, AgentVersion
from versions_app.models.version import get_head_version, get_live_version


class DraftVersion(NamedTuple):
    """A version of a draft that was never live."""

    number: int
    name: str
    author_id: int | None
    author_name: str
    message: str
    changed_fields: Sequence[str]


def find_draft_versions(agent: Agent) -> list[DraftVersion]:
    """Return the versions of the draft, newest first, back to a version that was live. Without a draft, none."""
    if not agent.has_draft:
        return []
    entries = Activation.objects.filter(agent=agent)
    was_live = Exists(entries.filter(to_version_id=OuterRef("pk")))
    # The entry that made a version live may have expired, when that of the next one has not.
    was_replaced = Q(pk__in=entries.exclude(from_version_id=None).values("from_version_id"))
    versions = AgentVersion.objects.filter(~was_live, ~was_replaced, agent=agent).defer("snapshot_text")
    return [
        DraftVersion(
            version.version_number,
            version.name,
            version.author_id,
            version.author_name,
            version.custom_message,
            version.changed_fields,
        )
        for version in walk_draft(agent, {version.version_number: version for version in versions})
    ]


def walk_draft(agent: Agent, never_live: dict[int, AgentVersion]) -> Iterator[AgentVersion]:
    """Yield the head and the versions on which it is based, by number, down to one that was live."""
    number: int | None = get_head_version(agent).version_number
    expired_before = timezone.now() - timedelta(days=settings.ACTIVATION_DAYS)
    below_live: set[int] | None = None
    # By the base, not by the number: a version of live may lie between two of the draft. Each once: a fixture may have
    # a version that is based on itself.
    while number in never_live:
        version = never_live.pop(number)
        # All its entries may have expired. What the live version is based on went live at the latest with it.
        if version.created_at < expired_before:
            below_live = numbers_below_live(agent) if below_live is None else below_live
            if number in below_live:
                return
        yield version
        number = version.based_on


def numbers_below_live(agent: Agent) -> set[int]:
    """Return the numbers of the versions on which the live version is based, directly or by others."""
    based_on = dict(AgentVersion.objects.filter(agent=agent).values_list("version_number", "based_on"))
    number, numbers = get_live_version(agent).version_number, set[int]()
    while (base := based_on.pop(number, None)) is not None:
        numbers.add(base)
        number = base
    return numbers


def versions_of_others(draft: Sequence[DraftVersion], user: Caller) -> list[DraftVersion]:
    """Return the versions of a draft that another person saved. Those of the system have no author's name."""
    return [version for version in draft if version.author_name and version.author_id != user.pk]
