"""Sessions in the database under the hash of their key, so that no copy of the database lets anybody act as a user."""

from __future__ import annotations

import hashlib
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

HASH_LENGTH = 40  # characters; the column has no more


def hash_session_key(key: str) -> str:
    """Return the hash of a session key. A slow hash is not needed for a random key of 32 characters."""
    # A request may contain half of a surrogate pair, at which `encode` would raise.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]


class SessionStore(db.SessionStore):
    """A session whose key only the cookie has."""

    def _get_session_from_db(self) -> Session | None:
        rows = Session.objects.filter(expire_date__gt=timezone.now())
        row = rows.filter(session_key=hash_session_key(self.session_key or "")).first()
        if row is None:
            self._session_key = None
        return row

    def exists(self, session_key: str) -> bool:
        return super().exists(hash_session_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = super().create_model_instance(data)
        row.session_key = hash_session_key(row.session_key)
        return row  # type: ignore[return-value]

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            super().delete(hash_session_key(key))

    # The asynchronous methods of Django do not call the synchronous ones: they would look for the key without a hash.
    async def _aget_session_from_db(self) -> Session | None:
        return await sync_to_async(self._get_session_from_db)()

    async def aexists(self, session_key: str) -> bool:
        return await sync_to_async(self.exists)(session_key)

    async def acreate_model_instance(self, data: dict[str, Any]) -> Session:
        return await sync_to_async(self.create_model_instance)(data)

    async def adelete(self, session_key: str | None = None) -> None:
        await sync_to_async(self.delete)(session_key)
