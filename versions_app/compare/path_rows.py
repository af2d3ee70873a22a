"""The rows of a comparison of JSON: one for each path, with both values as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agentcms.wire.json_types import JSONValue
from agents_app.configuration.display import variable_facts
from versions_app.compare.diff import FieldDiff, PathDiff, diff_paths

EMPTY_WORDS = {"memory": "defaults"}  # what an object without members means
VARIABLE_MEMBERS = {"type", "title", "description", "default"}  # which the words of a variable tell
MAX_JSON_LENGTH = 4000


class PathRow(NamedTuple):
    """A differing path inside a JSON value, with both values as text. None means absent."""

    path: str
    old: str | None
    new: str | None
    change: int


def differing_paths(diff: FieldDiff) -> Iterator[PathDiff]:
    """Yield each path at which a field differs. An object that was added or removed has one for each member."""
    for path in diff_paths(members_or_value(diff.before, diff.after), members_or_value(diff.after, diff.before)):
        # The schema of variables is always one of an object, which says nothing where the whole of it is new.
        if diff.field != "requestContextSchema" or path.path != "type" or path.kind == "changed":
            yield from split_members(path)


def members_or_value(value: object, other: object) -> object:
    """Return a side of a difference: no members instead of nothing, where the other side has members."""
    return type(other)() if value is None and isinstance(other, dict | list) else value


def split_members(path: PathDiff) -> Iterator[PathDiff]:
    """Yield the members of an added or removed value, or the value itself if it has no objects inside."""
    value = path.before if path.kind == "removed" else path.after
    if path.kind == "changed" or not has_objects(value) or describes_variable(path.path, value):
        yield path
        return
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in members:
        name = f"{path.path}.{key}" if isinstance(value, dict) else f"{path.path}[{key}]"
        yield from split_members(path._replace(path=name, **{side_of(path): item}))


def side_of(path: PathDiff) -> str:
    return "before" if path.kind == "removed" else "after"


def has_objects(value: object) -> bool:
    if isinstance(value, list):
        return any(has_objects(item) or isinstance(item, list) for item in value)
    return isinstance(value, dict) and bool(value)


def describes_variable(path: str, value: object) -> bool:
    """Return whether a path and its value are a declared variable that words describe completely."""
    return path.startswith("properties.") and isinstance(value, Mapping) and VARIABLE_MEMBERS.issuperset(value)


def build_path_row(diff: FieldDiff, path: PathDiff, number: int) -> PathRow:
    """Return the row of a path, with a number that the keys `n` and `p` step through."""
    old = None if path.kind == "added" else path_text(diff.field, path.path, path.before, diff.before)
    new = None if path.kind == "removed" else path_text(diff.field, path.path, path.after, diff.after)
    name = path.path.removeprefix("properties.") if diff.field == "requestContextSchema" else path.path
    return PathRow(name or "value", old, new, number)


def path_text(field: str, path: str, value: JSONValue, whole: JSONValue) -> str:
    """Return the value of a path: a declared variable in words, and others as JSON."""
    if field == "requestContextSchema" and describes_variable(path, value):
        words = dict(variable_facts(whole)).get(path.removeprefix("properties."))
        return truncate_text(words or readable_json(value))
    return EMPTY_WORDS.get(field, "{}") if value == {} else readable_json(value)


def readable_json(value: object) -> str:
    """Return the value as JSON, indented where it has objects inside, truncated to MAX_JSON_LENGTH."""
    return truncate_text(json.dumps(value, ensure_ascii=False, indent=2 if has_objects(value) else None))


def truncate_text(text: str) -> str:
    if len(text) <= MAX_JSON_LENGTH:
        return text
    return f"{text[:MAX_JSON_LENGTH]}… ({len(text) - MAX_JSON_LENGTH:,} more characters)"
