"""The filter that an agent fixes for its searches of a base.

A value such as `"{{ tier }}"` is replaced by the fact `tier` of the session: what the server knows of the caller. What
the caller claims in a request context is never used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentcms.wire.json_types import JSONMapping, JSONValue
from agentcms.wire.metadata_filter import Filter, FilterError, parse_filter
from agents_app.configuration.knowledge import find_fact

NO_FACT_MESSAGE = "The agent filters this search by '{name}', which is not known of this caller. Nothing was searched."


def fill_facts(value: JSONValue, facts: JSONMapping) -> JSONValue:
    """Return a filter with its facts. Raise FilterError if one is missing: the search must not become wider."""
    if isinstance(value, str) and (match := find_fact(value)):
        if facts.get(match[1]) is None:
            raise FilterError("", NO_FACT_MESSAGE.format(name=match[1]))
        return facts[match[1]]
    if isinstance(value, Mapping):
        return {key: fill_facts(item, facts) for key, item in value.items()}
    return [fill_facts(item, facts) for item in value] if isinstance(value, list) else value


def parse_fixed_filter(value: JSONValue, keys: Collection[str], facts: JSONMapping) -> Filter:
    """Return the filter of an agent for a caller. Raise FilterError.

    A fact that is a list stands for any of its items: `{"team": "{{ teams }}"}` is `{"team": {"$in": […]}}`.
    """
    return parse_filter(lists_to_in(fill_facts(value, facts), keys), keys)


def lists_to_in(value: JSONValue, keys: Collection[str]) -> JSONValue:
    """Replace each list where a single value is expected."""
    if isinstance(value, list):
        return [lists_to_in(item, keys) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: {"$in": item} if name in keys and isinstance(item, list) else lists_to_in(item, keys)
        for name, item in value.items()
    }
