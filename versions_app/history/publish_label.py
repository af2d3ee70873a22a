"""The label of the button that publishes a version."""

from __future__ import annotations

from collections.abc import Sequence

from agentcms.plural import join_words, pluralize
from versions_app.history.draft import DraftVersion

MAX_NAMED_AUTHORS = 3


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
