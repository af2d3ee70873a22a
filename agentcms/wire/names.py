"""Conversion between Python names, wire names and paths."""

from __future__ import annotations

import re
from functools import lru_cache

_MAX_KEY_LENGTH = 100


def printable_key(key: str) -> str:
    """Return a key of a request in a form that a response may quote: short, without NUL, valid UTF-8."""
    clipped = key if len(key) <= _MAX_KEY_LENGTH else key[:_MAX_KEY_LENGTH] + "…"
    return clipped.replace("\0", "\\u0000").encode("utf-8", "backslashreplace").decode()


def join_path(path: str, key: str) -> str:
    """Return the path of a member: `a` and `b` make `a.b`."""
    return f"{path}.{printable_key(key)}" if path else printable_key(key)


def join_paths(path: str, inner: str) -> str:
    """Return the path of what is inside a member: `b` in `a` is `a.b`, `[0]` in it `a[0]`, and a blank path `a`."""
    return f"{path}{'' if inner[:1] in ('', '[') else '.'}{inner}"


@lru_cache(maxsize=1024)
def to_wire(name: str) -> str:
    """Return the wire name of a Python name: `versionNumber` for `version_number`."""
    return re.sub(r"(?<=[a-z0-9])_([a-z0-9])", lambda match: match[1].upper(), name)


@lru_cache(maxsize=1024)
def to_python(name: str) -> str:
    """Return the Python name of a wire name: `version_number` for `versionNumber`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)


def wire_path(path: str) -> str:
    """Return a path with the wire name of its field. Names below the field are user data and stay unchanged."""
    end = next((index for index, letter in enumerate(path) if letter in ".["), len(path))
    return to_wire(path[:end]) + path[end:]
