"""The role that the current request needed, noted for a later replay of its response."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from access_app.role import Role


@dataclass
class RequiredRole:
    """A role for an owner. A blank role means that the request needs none; None means that the view named none."""

    role: str | None = None
    owner_id: str = ""


_current: ContextVar[RequiredRole | None] = ContextVar("required_role", default=None)


def note_required_role(role: Role | None, owner_id: str = "") -> None:
    """Note which role the request needs, or None if it needs no role. The last call counts."""
    if (required := _current.get()) is not None:
        required.role, required.owner_id = role.value if role else "", owner_id


@contextmanager
def collect_required_role() -> Iterator[RequiredRole]:
    """Collect the role that is noted inside the block."""
    required = RequiredRole()
    token = _current.set(required)
    try:
        yield required
    finally:
        _current.reset(token)
