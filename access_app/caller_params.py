"""Callers of queries that are built once: who asks comes later, as parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from access_app.permissions import has_role_everywhere
from access_app.role import Role

# The parameters of a query that is asked for a caller; `caller_params` has their values.
CALLER_PARAMS = {"user_id": int}


class CallerKind(NamedTuple):
    """What decides how a query looks that is asked for a caller."""

    sees_all: bool

    @classmethod
    def of(cls, user: Any) -> Self:
        return cls(has_role_everywhere(user, Role.VIEWER))


def caller_params(user: Any) -> dict[str, Any]:
    """The caller as parameters."""
    return {"user_id": user.pk}


@dataclass(frozen=True)
class PlaceholderCaller:
    """A caller while a query is built: a superuser, or a member whose id comes later."""

    is_superuser: bool
    pk: int
    is_active: bool = True
    is_authenticated: bool = True


def placeholder_caller(kind: CallerKind, user_id: int) -> Any:
    """Who stands for every caller of one kind."""
    return PlaceholderCaller(kind.sees_all, user_id)
