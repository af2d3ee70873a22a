"""Throttles of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from access_app.models import ApiKey
from access_app.throttling.limiter import Limiter
from access_app.throttling.networks import network_of

if TYPE_CHECKING:  # rest_framework.views loads this module, so an import would be circular
    from rest_framework.views import APIView

calls = Limiter("calls", lambda: settings.API_THROTTLE)
wrong_keys = Limiter("wrong-keys", lambda: settings.API_THROTTLE and settings.API_WRONG_KEYS)


class CallThrottle(BaseThrottle):
    """A throttle of calls by API key, or by network without a key."""

    seconds = 0

    def allow_request(self, request: Request, view: APIView) -> bool:
        key = request.auth
        # By key, not by user: one program must not use up the calls of another one.
        caller = f"key:{key.pk}" if isinstance(key, ApiKey) else f"address:{network_of_request(request)}"
        self.seconds = calls.hit(caller)
        return not self.seconds

    def wait(self) -> float:
        return float(self.seconds)


def network_of_request(request: Request) -> str:
    """Return the network that counts as the address of a request."""
    return network_of(str(request.META.get("REMOTE_ADDR", "")))
