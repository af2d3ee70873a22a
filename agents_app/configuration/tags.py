"""Tags of agents: the list of texts at `tags` in the metadata."""

from __future__ import annotations

import json

from agentcms.wire.json_types import JSONValue


def read_tags(value: str | float | None) -> list[str]:
    """Return the tags from the JSON text of `metadata.tags`, each once. Anything but a list of texts has none.

    SQLite returns a number as a number.
    """
    try:
        tags: JSONValue = json.loads(value) if isinstance(value, str) else []
    except (ValueError, RecursionError):  # a plain text
        return []
    if not isinstance(tags, list):
        return []
    return [*dict.fromkeys(tag for tag in tags if isinstance(tag, str) and tag.strip())]
