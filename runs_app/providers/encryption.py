"""Encryption of stored API keys of providers with PROVIDER_KEY_SECRET."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


def encrypt(text: str) -> str:
    return _cipher().encrypt(text.encode()).decode()


def decrypt(token: str) -> str | None:
    """Return the text, or None if it was encrypted with another secret."""
    from cryptography.fernet import InvalidToken

    try:
        return _cipher().decrypt(token.encode()).decode()
    except InvalidToken:
        return None


def _cipher() -> Fernet:
    from cryptography.fernet import Fernet  # heavy; most processes never need it

    # The setting may be the secret that signs sessions, so a separate key is derived from it.
    digest = hashlib.sha256(b"keys of model providers\0" + settings.PROVIDER_KEY_SECRET.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
