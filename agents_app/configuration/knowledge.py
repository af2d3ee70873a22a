"""The knowledge bases that an agent searches, by key.

    {"handbook": {"filter": {"audience": "{{ tier }}"}, "topK": 5, "minScore": 0.4}}

`filter` is added to every search, so that a model cannot widen it. A value such as `"{{ tier }}"` is a fact of the
session: what the server knows of the caller. `topK` is the most passages of a search, and passages that are less
similar to the question than `minScore` are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from agentcms.wire.json_types import JSONValue
from agentcms.wire.metadata_filter import FilterError, keys_of_filter, parse_filter
from agents_app.registry import Entry, Kind, registry

KNOWLEDGE = "knowledge"
KNOWLEDGE_FILTERS = "knowledge.filter"  # the keys of fixed filters, each after its base: `handbook/audience`
NO_BASE_MESSAGE = "No knowledge base has the ID '{key}'."
find_fact = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}").fullmatch
FILTER_MESSAGE = "The filter of the knowledge base '{key}' cannot be used: {reason}"


def find_base(key: str, owner_id: str) -> Entry | None:
    """Return the entry of a base that agents of this owner may search, or None."""
    entry = registry.find_staff_entry(Kind.KNOWLEDGE, key)
    return entry if entry is not None and entry.is_usable_by(owner_id) else None


def find_base_problems(references: Mapping[str, Iterable[str]], owner_id: str) -> Iterator[tuple[str, str]]:
    """Yield each base that an agent of this owner cannot search, or not by its filter, with the reason.

    The references are those of a version: `filter_references()` are among them.
    """
    for key in references.get(KNOWLEDGE, ()):
        if find_base(key, owner_id) is None:
            yield key, NO_BASE_MESSAGE.format(key=key)
    for reference in references.get(KNOWLEDGE_FILTERS, ()):
        key, _, name = reference.partition("/")
        entry = find_base(key, owner_id)
        if entry is not None and (problem := filter_problem(key, entry, {"filter": {name: None}})):
            yield key, problem


def filter_references(value: object) -> list[str]:
    """Return the keys of the filters in the field `knowledge` of an agent, each after its base."""
    return [
        f"{key}/{name}"
        for key, choice in (value.items() if isinstance(value, dict) else ())
        for name in _filtered_keys(choice)
    ]


def _filtered_keys(choice: object) -> list[str]:
    try:
        return keys_of_filter(parse_filter(choice.get("filter") if isinstance(choice, dict) else None, None))
    except FilterError:  # rows written by SQL or a fixture may not follow the schema
        return []


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
