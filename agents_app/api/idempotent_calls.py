"""Support for the `Idempotency-Key` of requests that act outside of the database.

A transaction would hold up other writers for as long as such a request waits. So the record of the key is committed
before the request acts, and has no status until the response is stored. A request that sends something which nobody
can take back notes that first: it is never sent again with the same key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial, wraps

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from agentcms.api.responses import json_response
from agentcms.db.connections import return_connection
from agentcms.errors import ApiError, Conflict, KeyInProgress
from agentcms.wire.canonical import sha256_hex
from agents_app.api import idempotency
from agents_app.api.idempotency import (
    Post,
    claim_key,
    find_record,
    idempotency_key,
    repeat_response,
    replayed,
    request_content,
    store_response,
    takes_idempotency_key,
)
from agents_app.api.required_role import RequiredRole
from agents_app.models import IdempotencyRecord

POLL_INTERVAL = 0.1  # seconds
NO_ROLE = RequiredRole(role="")  # `check_rights` checks all rights
OUTCOME_UNKNOWN_MESSAGE = (
    "The first request with this Idempotency-Key was sent, but its outcome is unknown. "
    "Check what it did. To send it again, use a new key."
)

_current: ContextVar[IdempotencyRecord | None] = ContextVar("current_record", default=None)


class OutcomeUnknown(Conflict):
    """409: a request with the same `Idempotency-Key` may have acted, but nobody knows its outcome."""

    def __init__(self) -> None:
        super().__init__(OUTCOME_UNKNOWN_MESSAGE, "outcome_unknown")


def idempotent_call(check_rights: Callable[..., object], max_seconds: Callable[[], float]) -> Callable[[Post], Post]:
    """Run a POST with an `Idempotency-Key` once, outside of a transaction, and answer repeats with the first response.

    Args:
        check_rights: Gets the request and what the URL names. It checks all rights.
        max_seconds: Returns after how long a request without a response counts as lost. A repeat then acts, unless
            the request has called `note_sent`.
    """

    def decorate(post: Post) -> Post:
        @takes_idempotency_key
        @wraps(post)
        def wrapper(view: object, request: Request, **arguments: str) -> HttpResponse:
            act = partial(post, view, request, **arguments)
            key = idempotency_key(request)
            if key is None:
                return act()
            fingerprint = sha256_hex(request_content(request))
            while (record := claim_key(request, key, fingerprint)) is None:
                if (first := wait_for_response(request, key, fingerprint, max_seconds())) is not None:
                    check = partial(check_rights, request, **arguments)
                    return replayed(partial(repeat_response, request, check), first)
            return act_and_store(record, act)

        return wrapper

    return decorate


def note_sent() -> None:
    """Note that the current request now sends what it must not send twice. Without a key, this does nothing.

    Raise KeyInProgress if the request counted as lost meanwhile, because a repeat acts in its place.
    """
    if (record := _current.get()) is not None:
        waiting = IdempotencyRecord.objects.filter(pk=record.pk, status=0)
        if not waiting.update(status=IdempotencyRecord.SENT):
            raise KeyInProgress


def wait_for_response(request: Request, key: str, fingerprint: str, max_seconds: float) -> IdempotencyRecord | None:
    """Return the record with the first response to a key, or None if the first request has failed.

    Raise KeyInProgress if it has no response after LOCK_TIMEOUT, OutcomeUnknown if it was sent and is lost, and
    Unprocessable if it was another request.
    """
    deadline = time.monotonic() + idempotency.LOCK_TIMEOUT
    while (record := find_record(request, key, fingerprint)) is not None and not record.has_response:
        if record.created_at < timezone.now() - timedelta(seconds=max_seconds):  # the process of the request died
            if record.status == IdempotencyRecord.SENT:
                raise OutcomeUnknown
            IdempotencyRecord.objects.filter(pk=record.pk, status=0).delete()
        elif time.monotonic() > deadline:
            raise KeyInProgress
        else:
            return_connection()
            time.sleep(POLL_INTERVAL)
    return record


def act_and_store(record: IdempotencyRecord, act: Callable[[], HttpResponse]) -> HttpResponse:
    """Act and store the response. If the request fails before it is sent, the key is free again."""
    with current_record(record):
        try:
            response = act()
        except BaseException as error:
            if not IdempotencyRecord.objects.filter(pk=record.pk, status=0).delete()[0]:
                store_failure(record, error)
            raise
    return store_response(record, response, NO_ROLE)


@contextmanager
def current_record(record: IdempotencyRecord) -> Iterator[None]:
    """Let `note_sent` find the record inside the block."""
    token = _current.set(record)
    try:
        yield
    finally:
        _current.reset(token)


def store_failure(record: IdempotencyRecord, error: BaseException) -> None:
    """Store the response of a request that failed after it was sent."""
    known = error if isinstance(error, ApiError) else OutcomeUnknown()
    store_response(record, json_response(known.body, known.status), NO_ROLE)
