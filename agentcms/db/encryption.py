"""Encryption of secrets that the database stores, such as API keys of providers, with PROVIDER_KEY_SECRET."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


PROVIDER_KEYS = "keys of model providers"


def encrypt(text: str, purpose: str) -> str:
    """Return the text, encrypted with a key for this purpose."""
    return _cipher(purpose).encrypt(text.encode()).decode()


def decrypt(token: str, purpose: str) -> str | None:
    """Return the text, or None if it was encrypted with another secret or for another purpose."""
    from cryptography.fernet import InvalidToken

    try:
        return _cipher(purpose).decrypt(token.encode()).decode()
    except InvalidToken:
        return None


def _cipher(purpose: str) -> Fernet:
    from cryptography.fernet import Fernet  # heavy; most processes never need it

    # The setting may be the secret that signs sessions, so a separate key is derived from it for each purpose.
    digest = hashlib.sha256(f"{purpose}\0{settings.PROVIDER_KEY_SECRET}".encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
