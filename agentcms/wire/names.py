"""Convert between Python names, wire names and paths."""

from __future__ import annotations

import re
from functools import lru_cache

_MAX_KEY_LENGTH = 100


def printable_key(key: str) -> str:
    """A caller's key as it may stand in an answer: short, without NUL, and always UTF-8."""
    clipped = key if len(key) <= _MAX_KEY_LENGTH else key[:_MAX_KEY_LENGTH] + "…"
    return clipped.replace("\0", "\\u0000").encode("utf-8", "backslashreplace").decode()


def join_path(path: str, key: str) -> str:
    """The path of a member: `a` and `b` make `a.b`."""
    return f"{path}.{printable_key(key)}" if path else printable_key(key)


@lru_cache(maxsize=1024)
def to_wire(name: str) -> str:
    """`version_number` as it is called on the wire: `versionNumber`."""
    return re.sub(r"(?<=[a-z0-9])_([a-z0-9])", lambda match: match[1].upper(), name)


@lru_cache(maxsize=1024)
def to_python(name: str) -> str:
    """`versionNumber` as it is called in Python: `version_number`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)


def wire_path(path: str) -> str:
    """The path of a field on the wire; what stands below the field is the caller's own and stays."""
    end = next((index for index, letter in enumerate(path) if letter in ".["), len(path))
    return to_wire(path[:end]) + path[end:]
