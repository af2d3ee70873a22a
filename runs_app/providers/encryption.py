"""The keys of providers at rest: encrypted with PROVIDER_KEY_SECRET, readable by this installation alone."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from django.conf import settings


def encrypt(text: str) -> str:
    return str(_cipher().encrypt(text.encode()).decode())


def decrypt(token: str) -> str | None:
    """The text, or None where it was encrypted with another secret."""
    from cryptography.fernet import InvalidToken

    try:
        return str(_cipher().decrypt(token.encode()).decode())
    except InvalidToken:
        return None


def _cipher() -> Any:
    from cryptography.fernet import Fernet  # loads slowly; most processes never need it

    # The same secret may sign sessions; what is derived from it for keys is good for nothing else.
    digest = hashlib.sha256(b"keys of model providers\0" + settings.PROVIDER_KEY_SECRET.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
