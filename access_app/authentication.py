"""Bearer keys for the API."""

from __future__ import annotations

from typing import Any

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from access_app.models import ApiKey

INVALID = "Invalid or expired token"


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <api key>`: the request acts as the key's user, cut to the key's role."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"bearer":
            return None
        if len(words) != 2:
            raise AuthenticationFailed(INVALID)
        key = ApiKey.objects.find(words[1].decode("latin-1"))
        if key is None:
            raise AuthenticationFailed(INVALID)
        key.touch()
        user: Any = key.user
        user.api_key = key
        return user, key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="agentcms"'
