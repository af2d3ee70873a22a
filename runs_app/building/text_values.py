"""The texts inside contents of messages and inside JSON values.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pydantic_ai import TextContent

from agentcms.wire.json_types import JSONValue


def find_texts(value: JSONValue, *, keys: bool = True) -> Iterator[str]:
    """Yield the texts of a value at all depths, including the keys of objects unless `keys` is False."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, TextContent):
        yield value.content
    elif isinstance(value, dict):
        for key, item in value.items():
            if keys:
                yield key
            yield from find_texts(item, keys=keys)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_texts(item, keys=keys)


def replace_texts(value: JSONValue, texts: Mapping[str, str], *, keys: bool = True) -> JSONValue:
    """Return a value with its texts replaced, as `find_texts` found them. Keys that become equal get a number."""
    if isinstance(value, str):
        return texts[value]
    if isinstance(value, TextContent):
        return replace(value, content=texts[value.content])
    if isinstance(value, dict):
        names = distinct_keys(texts[key] for key in value) if keys else iter(value)
        return {name: replace_texts(item, texts, keys=keys) for name, item in zip(names, value.values(), strict=True)}
    if isinstance(value, list | tuple):
        return [replace_texts(item, texts, keys=keys) for item in value]
    return value


def distinct_keys(keys: Iterable[str]) -> Iterator[str]:
    """Yield each key, with a number where it would repeat an earlier one."""
    counts: Counter[str] = Counter()
    used: set[str] = set()
    for key in keys:
        name = key
        while name in used:
            counts[key] += 1
            name = f"{key} ({counts[key] + 1})"
        used.add(name)
        yield name
