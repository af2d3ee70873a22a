"""Callers of queries that are built once: who asks comes later, as parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from access_app.api_key_cache import unverified_key
from access_app.permissions import has_role_everywhere
from access_app.role import Role

# The parameters of a query that is asked for a caller; `asked_by` has their values.
CALLER_PARAMS = {"user_id": int, "user_name": str, "key_id": int, "key_hash": str, "key_role": str}


class CallerKind(NamedTuple):
    """What decides how a query looks that is asked for a caller."""

    sees_all: bool
    is_recalled: bool

    @classmethod
    def of(cls, user: Any) -> Self:
        return cls(has_role_everywhere(user, Role.VIEWER), unverified_key(user) is not None)


def caller_params(user: Any) -> dict[str, Any]:
    """The caller as parameters."""
    key = unverified_key(user)
    if key is None:
        return {"user_id": user.pk}
    own = {"key_id": key.pk, "key_hash": key.secret_hash, "key_role": key.role}
    return {"user_id": user.pk, "user_name": user.get_username(), **own}


@dataclass(frozen=True)
class KeyStandIn:
    """A key that was recalled, while a query is built."""

    pk: int
    secret_hash: str
    role: str


@dataclass(frozen=True)
class PlaceholderCaller:
    """A caller while a query is built: a superuser, or a member whose id comes later."""

    is_superuser: bool
    pk: int
    name: str
    recalled_key: KeyStandIn | None
    is_active: bool = True
    is_authenticated: bool = True

    def get_username(self) -> str:
        return self.name


def placeholder_caller(
    kind: CallerKind, user_id: int, user_name: str, key_id: int, key_hash: str, key_role: str
) -> Any:
    """Who stands for every caller of one kind."""
    key = KeyStandIn(key_id, key_hash, key_role) if kind.is_recalled else None
    return PlaceholderCaller(kind.sees_all, user_id, user_name, key)
