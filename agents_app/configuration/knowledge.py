"""The knowledge bases that an agent searches, by key.

    {"handbook": {"filter": {"audience": "{{ tier }}"}, "topK": 5}}

`filter` is added to every search, so that a model cannot widen it. A value such as `"{{ tier }}"` is a fact of the
session: what the server knows of the caller. `topK` is the most passages of a search.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from agentcms.wire.json_types import JSONValue
from agentcms.wire.metadata_filter import FilterError, parse_filter
from agents_app.registry import Entry, Kind, registry

KNOWLEDGE = "knowledge"
NO_BASE_MESSAGE = "No knowledge base has the ID '{key}'."
find_fact = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}").fullmatch
FILTER_MESSAGE = "The filter of the knowledge base '{key}' cannot be used: {reason}"


def find_base(key: str, owner_id: str) -> Entry | None:
    """Return the entry of a base that agents of this owner may search, or None."""
    entry = registry.find_staff_entry(Kind.KNOWLEDGE, key)
    return entry if entry is not None and entry.is_usable_by(owner_id) else None


def find_base_problem(key: str, owner_id: str) -> str:
    """Return why an agent of this owner cannot search a base, or a blank text."""
    return "" if find_base(key, owner_id) is not None else NO_BASE_MESSAGE.format(key=key)


def fact_names(value: object) -> Iterator[str]:
    """Yield the names of the facts in a filter, or in the field `knowledge` of an agent."""
    if isinstance(value, str) and (match := find_fact(value)):
        yield match[1]
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from fact_names(item)


def filter_problem(key: str, entry: Entry, options: JSONValue) -> str:
    """Return why the filter of an agent cannot be used, or a blank text."""
    try:
        parse_filter(options.get("filter"), entry.names)
    except FilterError as error:
        return FILTER_MESSAGE.format(key=key, reason=error)
    return ""


def usable_bases(value: object, owner_id: str) -> Iterator[tuple[str, Entry | str]]:
    """Yield the key of each base with its entry, or with the reason why the agent runs without it."""
    for key, choice in value.items() if isinstance(value, dict) else ():
        options = choice if isinstance(choice, dict) else {}
        entry = find_base(key, owner_id)
        if entry is None:
            yield key, NO_BASE_MESSAGE.format(key=key)
        else:
            # The tool that is built from the entry reads the options of the agent in its target.
            yield key, filter_problem(key, entry, options) or replace(entry, target=options)
