"""Keys that this process has read a moment ago, and what proves that they still hold.

Reading a key with its user took a third of the time of reading an agent. So a view may be asked with the key as it was
when it was last read: the question that the view asks anyway then answers only if the key and its user are unchanged.
Where it answers nothing, the key is read anew.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, Q
from django.db.models.functions import Now

from access_app.models import ApiKey, columns_of, key_of

MOST = 1000  # keys that a process recalls

_read: dict[str, tuple[Any, ...]] = {}


def cache_key(key: ApiKey) -> None:
    """Keep what was read of a valid key and of its user."""
    if len(_read) >= MOST:
        _read.clear()
    _read[key.secret_hash] = columns_of(key)


def get_cached_key(secret_hash: str) -> ApiKey | None:
    """The key as it was read last, if that was a moment ago; a new object each time, as a query would give."""
    columns = _read.get(secret_hash)
    key = key_of(columns) if columns else None
    return None if key is None or not key.used_recently else key


def unverified_key(user: Any) -> Any:
    """The key of a caller that is still to be proved, or None."""
    return getattr(user, "recalled_key", None)


def key_is_unchanged(user: Any) -> Exists:
    """That the recalled key of a caller is as it was: a condition for the query that the caller asks."""
    key = unverified_key(user)
    same = ApiKey.objects.filter(pk=key.pk, secret_hash=key.secret_hash, role=key.role, revoked_at=None)
    same = same.filter(user_id=user.pk, user__is_active=True, user__is_superuser=user.is_superuser)
    same = same.filter(**{f"user__{get_user_model().USERNAME_FIELD}": user.get_username()})  # the history tells it
    return Exists(same.filter(Q(expires_at=None) | Q(expires_at__gt=Now())).order_by())
