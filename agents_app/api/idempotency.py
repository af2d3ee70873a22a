"""Support for the `Idempotency-Key` header."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import cast

from django.db import OperationalError, connection, transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import require_role
from access_app.role import Role
from agentcms.api.responses import json_text_response
from agentcms.errors import KEY_REUSED_MESSAGE, ApiError, Conflict, KeyInProgress, Unprocessable
from agentcms.wire.canonical import canonical
from agents_app.api.lookups import agent_not_found
from agents_app.api.required_role import RequiredRole, collect_required_role
from agents_app.models import Agent, IdempotencyRecord

LOCK_TIMEOUT = 5  # seconds to wait for a request with the same key
LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE

IDEMPOTENCY_KEY_MESSAGE = "An Idempotency-Key has 1 to 255 printable ASCII characters."
NOT_REPEATABLE_MESSAGE = "This request was done before, but its response cannot be repeated. Read the agent instead."


Post = Callable[..., HttpResponse]


def idempotent_while(find_visible: Callable[..., object]) -> Callable[[Post], Post]:
    """Run a POST with an `Idempotency-Key` once and answer repeats with the first response.

    The view calls `note_required_role()`, as `lock_matching_agent()` does. Otherwise its response cannot be repeated.

    Args:
        find_visible: Gets the request and what the URL names. It raises NotFound where the caller does not see that
            any longer.
    """

    def decorate(post: Post) -> Post:
        @wraps(post)
        def wrapper(view: object, request: Request, **arguments: str) -> HttpResponse:
            act = partial(post, view, request, **arguments)
            # Before anything else: the canonical text of a large body takes longer than the rest of most requests.
            if "HTTP_IDEMPOTENCY_KEY" not in request.META:
                return act()
            content = f"{request.get_full_path()}\n{canonical(request.data)}"
            return run_idempotently(request, content, act, partial(find_visible, request, **arguments))

        return wrapper

    return decorate


def find_visible_agent(request: Request, agent_id: str | None = None, **arguments: str) -> None:
    """Raise NotFound if the URL names an agent that the caller may not see."""
    if agent_id is not None and not Agent.objects.for_user(request.user).filter(pk=agent_id).exists():
        raise agent_not_found(agent_id)


idempotent = idempotent_while(find_visible_agent)


def run_idempotently(
    request: Request, content: str, act: Callable[[], HttpResponse], check_visible: Callable[[], object] | None = None
) -> HttpResponse:
    """Act, or return the response that the key got first. `content` identifies the path and the body.

    `check_visible` raises NotFound where the caller may no longer see what the request is about.
    """
    key = idempotency_key(request)
    if key is None:
        return act()
    fingerprint = hashlib.sha256(content.encode()).hexdigest()
    with transaction.atomic():
        # In the transaction of the response: if the request fails, the key is free again.
        record = claim_key(request, key, fingerprint)
        if record is not None:
            with collect_required_role() as required:
                response = act()
            return store_response(record, response, required)
    return replay_response(request, key, fingerprint, check_visible)


def idempotency_key(request: Request) -> str | None:
    """Return the validated `Idempotency-Key` of a request, or None if it has none."""
    key: str | None = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if key is not None and (not 0 < len(key) <= 255 or not (key.isascii() and key.isprintable())):
        raise ApiError(400, IDEMPOTENCY_KEY_MESSAGE, "invalid_key")
    return key


def claim_key(request: Request, key: str, fingerprint: str) -> IdempotencyRecord | None:
    """Claim the key for this request, or return None if it has a response.

    Raise KeyInProgress if another request with the key is still in progress after LOCK_TIMEOUT.
    """
    try:
        with transaction.atomic(), short_lock_timeout():
            return IdempotencyRecord.objects.claim(_user_id(request), key, fingerprint)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != LOCK_NOT_AVAILABLE:
            raise
        raise KeyInProgress from None


@contextmanager
def short_lock_timeout() -> Iterator[None]:
    """Wait for locks at most LOCK_TIMEOUT inside the block. On SQLite writers wait for each other by themselves."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_TIMEOUT}s"])
    yield
    with connection.cursor() as cursor:  # not after an error: the transaction is rolled back with the setting
        cursor.execute("SET LOCAL lock_timeout TO DEFAULT")


def store_response(record: IdempotencyRecord, response: HttpResponse, required: RequiredRole) -> HttpResponse:
    """Store a response with the role that its request needed, in the transaction of the request."""
    record.status, record.content = response.status_code, response.content.decode()
    record.etag = response.headers.get("ETag", "")
    record.role, record.owner_id = required.role, required.owner_id
    record.save(update_fields=["status", "content", "etag", "role", "owner_id"])
    return response


def replay_response(
    request: Request, key: str, fingerprint: str, check_visible: Callable[[], object] | None
) -> HttpResponse:
    """Return the first response to a key, if the caller may still do what the first request did."""
    record = IdempotencyRecord.objects.find(_user_id(request), key)
    if record is None or record.fingerprint != fingerprint:
        raise Unprocessable(KEY_REUSED_MESSAGE, "key_reused")
    if check_visible is not None:
        check_visible()
    check_still_allowed(request, record)
    response = json_text_response(record.content, record.status, record.etag)
    response.headers["Idempotent-Replayed"] = "true"
    return response


def check_still_allowed(request: Request, record: IdempotencyRecord) -> None:
    """Check that the caller has the role that the first request needed.

    Raise RoleRequired, and Conflict for a record without a role, as an older release stores it.
    """
    if record.role is None:
        raise Conflict(NOT_REPEATABLE_MESSAGE, "not_repeatable")
    if record.role:
        require_role(request.user, Role(record.role), record.owner_id)


def _user_id(request: Request) -> int:
    return cast(int, request.user.pk)  # the permission classes refuse anonymous callers
