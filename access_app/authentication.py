"""API key authentication for Django REST framework."""

from __future__ import annotations

from typing import Any, NoReturn

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from access_app.models import ApiKey
from access_app.throttling.api import remote_address, wrong_keys

INVALID_KEY_MESSAGE = "Invalid or expired token"


class ApiKeyAuthentication(BaseAuthentication):
    """Authentication by `Authorization: Bearer <API key>`.

    The request acts as the key's user, with no role above the key's own.
    """

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        """Return the user and the key, or None where the header names another scheme.

        Raises AuthenticationFailed or Throttled where the key is not valid.
        """
        # `request.headers` would parse all headers for one.
        words = request.META.get("HTTP_AUTHORIZATION", "").split()
        if not words or words[0].lower() != "bearer":
            return None
        key = ApiKey.objects.find(words[1] if len(words) == 2 else "")
        if key is None:
            self.reject(request)
        key.touch()
        user: Any = key.user
        user.api_key = key
        return user, key

    def reject(self, request: Request) -> NoReturn:
        """Count the failed attempt of this address. Raise Throttled after too many, else AuthenticationFailed."""
        if seconds := wrong_keys.hit(remote_address(request)):
            raise Throttled(wait=seconds)
        raise AuthenticationFailed(INVALID_KEY_MESSAGE)

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="agentcms"'
