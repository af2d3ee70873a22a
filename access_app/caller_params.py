"""Parameters for queries that are compiled once and run for different users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from access_app.permissions import has_role_everywhere
from access_app.role import Role

# The user parameters of a compiled query; `caller_params` returns their values.
CALLER_PARAMS = {"user_id": int}


class CallerKind(NamedTuple):
    """The variant of a query: for users who see all owners, or for members."""

    sees_all: bool

    @classmethod
    def of(cls, user: Any) -> Self:
        """Return the kind of a user."""
        return cls(has_role_everywhere(user, Role.VIEWER))


def caller_params(user: Any) -> dict[str, Any]:
    """Return the user as query parameters."""
    return {"user_id": user.pk}


@dataclass(frozen=True)
class PlaceholderCaller:
    """A user while a query is compiled: a superuser, or a member whose id is a parameter."""

    is_superuser: bool
    pk: int
    is_active: bool = True
    is_authenticated: bool = True


def placeholder_caller(kind: CallerKind, user_id: int) -> Any:
    """Return the user to compile a query with, for all users of a kind."""
    return PlaceholderCaller(kind.sees_all, user_id)
