"""POSTs that a caller may repeat: `Idempotency-Key`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection, transaction
from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.exceptions import api_error
from agentcms.api.responses import json_text_response
from agentcms.errors import ApiError, Conflict, Forbidden, NotFound, Unprocessable
from agentcms.wire.canonical import canonical
from agents_app.models import Agent, IdempotencyRecord

Post = Callable[..., HttpResponse]

PATIENCE = 5  # seconds to wait for the answer of a request in progress


class _Undone(Exception):
    """Takes back what was tried only to see whether it is still allowed."""


def idempotent(post: Post) -> Post:
    """Let a POST with an `Idempotency-Key` happen once: its repeats get the first answer."""

    @wraps(post)
    def wrapper(view: Any, request: Request, **arguments: str) -> HttpResponse:
        def act() -> HttpResponse:
            return post(view, request, **arguments)

        if "HTTP_IDEMPOTENCY_KEY" not in request.META:
            return act()
        return run_idempotently(
            request, f"{request.get_full_path()}\n{canonical(request.data)}", act, arguments.get("agent_id")
        )

    return wrapper


def run_idempotently(
    request: Request, said: str, act: Callable[[], HttpResponse], agent_id: str | None = None
) -> HttpResponse:
    """Act, or answer what was answered when the key came first; `said` is the request's path and body."""
    key = idempotency_key(request)
    if key is None:
        return act()
    mark = hashlib.sha256(said.encode()).hexdigest()
    with transaction.atomic():
        kept = claim_key(request, key, mark)
        if kept is not None:
            return store_response(kept, act())
    return replay_response(request, key, mark, act, agent_id)


def idempotency_key(request: Request) -> str | None:
    """The `Idempotency-Key` of a request, checked, or None where it has none."""
    key: str | None = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if key is not None and (not 0 < len(key) <= 255 or not (key.isascii() and key.isprintable())):
        raise ApiError(400, "An Idempotency-Key has 1 to 255 printable ASCII characters.", "invalid_key")
    return key


def claim_key(request: Request, key: str, mark: str) -> IdempotencyRecord | None:
    """Take the key, or None where an answer is there; a request in progress is waited for, but not for long."""
    try:
        with transaction.atomic(), short_lock_timeout():
            return IdempotencyRecord.objects.claim(request.user, key, mark)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != "55P03":  # lock_not_available
            raise
        said = "A request with this Idempotency-Key is in progress. Repeat it shortly."
        raise Conflict(said, "in_progress", {"Retry-After": "1"}) from None


class short_lock_timeout:
    """Wait for locks no longer than PATIENCE; SQLite's writers wait in line for each other anyway."""

    def __enter__(self) -> None:
        self._set(f"{PATIENCE}s")

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._set("")

    def _set(self, limit: str) -> None:
        if connection.vendor != "postgresql":
            return
        with connection.cursor() as cursor:
            if limit:
                cursor.execute("SELECT set_config('lock_timeout', %s, true)", [limit])
            else:
                cursor.execute("SET LOCAL lock_timeout TO DEFAULT")


def store_response(kept: IdempotencyRecord, answer: HttpResponse) -> HttpResponse:
    """Store an answer beside what it answers, in one transaction."""
    kept.status, kept.content = answer.status_code, answer.content.decode()
    kept.etag = answer.headers.get("ETag", "")
    kept.save(update_fields=["status", "content", "etag"])
    return answer


def replay_response(
    request: Request, key: str, mark: str, act: Callable[[], HttpResponse], agent_id: str | None
) -> HttpResponse:
    """The first answer again, once the caller may still do what it did."""
    user: Any = request.user
    kept = IdempotencyRecord.objects.filter(user=user, key=key).first()
    if kept is None or kept.fingerprint != mark:
        raise Unprocessable("This Idempotency-Key was used for another request.", "key_reused")
    check_still_allowed(request, act, agent_id)
    answer = json_text_response(kept.content, kept.status, kept.etag)
    answer.headers["Idempotent-Replayed"] = "true"
    return answer


def check_still_allowed(request: Request, act: Callable[[], HttpResponse], agent_id: str | None) -> None:
    """Try it again, take it back, and let only a refusal count: the rights may have changed since."""
    try:
        with transaction.atomic():
            act()
            raise _Undone
    except (Forbidden, PermissionDenied):
        raise
    except NotFound:
        if agent_id is not None and not Agent.objects.for_user(request.user).filter(pk=agent_id).exists():
            raise
    except Exception as error:
        if not isinstance(error, _Undone) and api_error(error) is None:
            raise
