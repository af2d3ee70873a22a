"""What models call the tools of an agent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agents_app.configuration.references import FIELD_KINDS, find_entry

LONGEST_NAME = 64  # the shortest limit of a provider
# What stands before the key of what is no tool by itself.
PREFIXES = {"tools": "", "integrationTools": "", "workflows": "workflow-", "agents": "agent-"}


def tool_name(key: str) -> str:
    """A key as every provider takes it for a tool's name; one that had to be changed stays unlike any other."""
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", key)
    if name == key and len(key) <= LONGEST_NAME and re.match("[a-zA-Z_]", key):
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    start = name if re.match("[a-zA-Z_]", name) else f"_{name}"
    return f"{start[: LONGEST_NAME - 9]}_{digest}"


def tool_names(configuration: Mapping[str, Any]) -> Iterator[str]:
    """The names that the tools of a configuration have; those that nothing registered are left out when it runs."""
    for field, prefix in PREFIXES.items():
        for key in configuration.get(field) or []:
            if field == "agents" or find_entry(FIELD_KINDS[field], key) is not None:  # a sub-agent may be stored
                yield tool_name(f"{prefix}{key}")
