"""Bearer keys for the API."""

from __future__ import annotations

from typing import Any, NoReturn

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from access_app.models import ApiKey
from access_app.throttling import address, wrong_keys

INVALID = "Invalid or expired token"


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <api key>`: the request acts as the key's user, cut to the key's role."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        # Not `request.headers`, which reads all of them.
        words = request.META.get("HTTP_AUTHORIZATION", "").split()
        if not words or words[0].lower() != "bearer":
            return None
        key = ApiKey.objects.find(words[1]) if len(words) == 2 else None
        if key is None:
            self.refuse(request)
        key.touch()
        user: Any = key.user
        user.api_key = key
        return user, key

    def refuse(self, request: Request) -> NoReturn:
        """The first few wrong keys of an address are a plain 401, the next must wait; a good key always passes."""
        if seconds := wrong_keys.take(address(request)):
            raise Throttled(wait=seconds)
        raise AuthenticationFailed(INVALID)

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="agentcms"'
