"""Encryption of secrets that the database stores, such as API keys of providers, with PROVIDER_KEY_SECRET."""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


PROVIDER_KEYS = "keys of model providers"


def encrypt(text: str, purpose: str) -> str:
    """Return the text, encrypted with a key for this purpose."""
    return _cipher(purpose, settings.PROVIDER_KEY_SECRET).encrypt(text.encode()).decode()


def decrypt(token: str, purpose: str) -> str | None:
    """Return the text, or None if it was encrypted with another secret or for another purpose.

    PROVIDER_KEY_SECRET_OLD, the secret before the present one, is also tried.
    """
    from cryptography.fernet import InvalidToken

    for secret in filter(None, (settings.PROVIDER_KEY_SECRET, settings.PROVIDER_KEY_SECRET_OLD)):
        with suppress(InvalidToken):
            return _cipher(purpose, secret).decrypt(token.encode()).decode()
    return None


def _cipher(purpose: str, secret: str) -> Fernet:
    from cryptography.fernet import Fernet  # heavy; most processes never need it

    # The secret may be the one that signs sessions, so a separate key is derived from it for each purpose.
    digest = hashlib.sha256(f"{purpose}\0{secret}".encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
