"""Bearer keys for the API."""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import wraps
from typing import Any, NoReturn

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpResponse
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed, Throttled
from rest_framework.request import Request

from access_app.api_key_cache import cache_key, get_cached_key, unverified_key
from access_app.models import ApiKey, hash_token
from access_app.throttling.api import address, wrong_keys
from agentcms.errors import ApiError, NotFound

INVALID = "Invalid or expired token"

ERRORS_BEFORE_VERIFICATION = (ApiError, PermissionDenied, ValidationError, APIException)

Caller = tuple[Any, ApiKey]
View = Callable[..., HttpResponse]


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <api key>`: the request acts as the key's user, cut to the key's role."""

    def authenticate(self, request: Request) -> Caller | None:
        # Not `request.headers`, which reads all of them.
        words = request.META.get("HTTP_AUTHORIZATION", "").split()
        if not words or words[0].lower() != "bearer":
            return None
        token = words[1] if len(words) == 2 else ""
        if allows_recalled(request) and (key := get_cached_key(hash_token(token))):
            return caller(key, recalled=True)
        return self.read(request, token)

    def read(self, request: Request, token: str) -> Caller:
        """The caller with this secret text, read from the database."""
        key = ApiKey.objects.find(token)
        if key is None:
            self.refuse(request)
        key.touch()
        cache_key(key)
        return caller(key, recalled=False)

    def refuse(self, request: Request) -> NoReturn:
        """The first few wrong keys of an address are a plain 401, the next must wait; a good key always passes."""
        if seconds := wrong_keys.hit(address(request)):
            raise Throttled(wait=seconds)
        raise AuthenticationFailed(INVALID)

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="agentcms"'


def caller(key: ApiKey, *, recalled: bool) -> Caller:
    user: Any = key.user
    user.api_key = key
    user.recalled_key = key if recalled else None
    return user, key


def allow_cached_key(view: View) -> View:
    """Let a view be asked with a key as this process read it last, which saves a query.

    What the view answers must hang on a query through `for_user` or one prepared for a caller: such a query finds
    nothing for a key that no longer holds. What was not found is looked for again, with the key read anew, and nothing
    else does the view refuse before that.
    """

    @wraps(view)
    def wrapper(self: Any, request: Request, **arguments: Any) -> HttpResponse:
        if unverified_key(request.user) is None:
            return view(self, request, **arguments)
        try:
            return view(self, request, **arguments)
        except NotFound:
            reload_key(request)
        except ERRORS_BEFORE_VERIFICATION:
            reload_key(request)
            raise
        return view(self, request, **arguments)

    wrapper.allows_recalled = True  # type: ignore[attr-defined]
    return wrapper


def verify_key_if_empty(request: Request, found: Sized) -> None:
    """Let nothing be found only by a key that was read for it: an empty list proves no other."""
    if not found and unverified_key(request.user) is not None:
        raise NotFound()


def reload_key(request: Request) -> None:
    """Read the key that was recalled; one that no longer holds is refused here."""
    token = request.META["HTTP_AUTHORIZATION"].split()[1]
    request.user, request.auth = ApiKeyAuthentication().read(request, token)


def allows_recalled(request: Request) -> bool:
    """Whether the view that is asked is `with_recalled_key`."""
    view: Any = (request.parser_context or {}).get("view")
    return hasattr(getattr(view, str(request.method).lower(), None), "allows_recalled")
