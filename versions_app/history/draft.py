"""The versions of a draft, which publishing it makes live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Exists, OuterRef

from access_app.caller import Caller
from agentcms.plural import join_words, pluralize
from agents_app.models import Agent
from versions_app.models import Activation, AgentVersion
from versions_app.models.version import get_head_version

MAX_NAMED_AUTHORS = 3


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
    never_live = ~Exists(Activation.objects.filter(to_version_id=OuterRef("pk")))
    versions = AgentVersion.objects.filter(never_live, agent=agent).defer("snapshot_text")
    by_number = {version.version_number: version for version in versions}
    number: int | None = get_head_version(agent).version_number
    draft: list[DraftVersion] = []
    # By the base, not by the number: a version of live may lie between two of the draft. Each once: a fixture may have
    # a version that is based on itself.
    while number in by_number:
        version = by_number.pop(number)
        message = version.custom_message
        draft.append(
            DraftVersion(number, version.name, version.author_id, version.author_name, message, version.changed_fields)
        )
        number = version.based_on
    return draft


def versions_of_others(draft: Sequence[DraftVersion], user: Caller) -> list[DraftVersion]:
    """Return the versions of a draft that another person saved. Those of the system have no author's name."""
    return [version for version in draft if version.author_name and version.author_id != user.pk]


def publish_label(number: int, others: Sequence[DraftVersion]) -> str:
    """Return the label of the button that publishes a version, with the versions of others that go live with it."""
    if not others:
        return f"Publish v{number}"
    return f"Publish v{number}, with {pluralize(len(others), 'version')} by {author_names(others)}"


def author_names(versions: Sequence[DraftVersion]) -> str:
    """Return the authors of versions as a list in words: `ann, tom and 2 others`."""
    names = list(dict.fromkeys(version.author_name for version in versions))
    if len(names) > MAX_NAMED_AUTHORS:
        names[MAX_NAMED_AUTHORS - 1 :] = [f"{len(names) - MAX_NAMED_AUTHORS + 1} others"]
    return join_words(names)
