"""API key authentication for Django REST framework."""

from __future__ import annotations

from typing import Any, NoReturn

from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from access_app.end_user_keys import reject_other_routes
from access_app.models import ApiKey
from access_app.sessions import SessionStore
from access_app.throttling.api import network_of_request, wrong_keys

INVALID_KEY_MESSAGE = "Invalid or expired token"


class ApiKeyAuthentication(BaseAuthentication):
    """Authentication by `Authorization: Bearer <API key>`.

    The request acts as the key's user, with no role above the key's own.
    """

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        """Return the user and the key, or None where the header names another scheme.

        Raise AuthenticationFailed or Throttled where the key is not valid.
        """
        # `request.headers` would parse all headers for one.
        words = request.META.get("HTTP_AUTHORIZATION", "").split()
        if not words or words[0].lower() != "bearer":
            return None
        key = ApiKey.objects.find(words[1] if len(words) == 2 else "")
        if key is None:
            self.reject(request)
        # Before `touch()`: a refused request is no use of the key.
        reject_other_routes(key, request.path)
        key.touch()
        user: Any = key.user
        user.api_key = key
        return user, key

    def reject(self, request: Request) -> NoReturn:
        """Count the failed attempt of this address. Raise Throttled after too many, else AuthenticationFailed."""
        if seconds := wrong_keys.hit(network_of_request(request)):
            raise Throttled(wait=seconds)
        raise AuthenticationFailed(INVALID_KEY_MESSAGE)

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="agentcms"'


def is_known_sender(environ: dict[str, Any]) -> bool:
    """Return True if a request may send a slow body: its host is ours and, for the API and imports, it is signed in.

    The application itself refuses the others.
    """
    request = WSGIRequest({**environ, "CONTENT_TYPE": ""})  # an invalid type would fail
    try:
        request.get_host()
    except DisallowedHost:
        return False
    if not request.path_info.startswith("/api/") and not settings.UPLOAD_PATHS.fullmatch(request.path_info):
        return True
    words = request.META.get("HTTP_AUTHORIZATION", "").split()
    if len(words) == 2 and words[0].lower() == "bearer":
        return ApiKey.objects.find(words[1]) is not None
    request.session = SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    return bool(get_user(request).is_authenticated)
