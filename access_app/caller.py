"""The type of a caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

    from access_app.caller_params import PlaceholderCaller

# A signed-in user, an anonymous one, or what replaces both while a query is compiled.
Caller: TypeAlias = "User | AnonymousUser | PlaceholderCaller"
