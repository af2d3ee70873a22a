"""Support for the `Idempotency-Key` header."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import TypeVar, cast

from django.db import OperationalError, connection, transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.end_user_keys import served_end_users
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.api.renderers import encode_json
from agentcms.api.responses import json_text_response
from agentcms.errors import KEY_REUSED_MESSAGE, ApiError, Conflict, KeyInProgress, Unprocessable
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONMapping, JSONValue
from agents_app.api.lookups import agent_not_found
from agents_app.api.required_role import RequiredRole, collect_required_role, note_required_role
from agents_app.models import Agent, IdempotencyRecord

LOCK_TIMEOUT = 5  # seconds to wait for a request with the same key
LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE
KEY_HEADER = "HTTP_IDEMPOTENCY_KEY"
TAKES_KEY = "takes_idempotency_key"  # the attribute of a method of a view that supports the header

IDEMPOTENCY_KEY_MESSAGE = "An Idempotency-Key has 1 to 255 printable ASCII characters."
NOT_REPEATABLE_MESSAGE = "This request was done before, but its response cannot be repeated. Read what it changed."


Post = Callable[..., HttpResponse]
Replay = Callable[[IdempotencyRecord], HttpResponse]
Marked = TypeVar("Marked", bound=Callable[..., object])


class ReferringResponse(HttpResponse):
    """A response of which an idempotency record has no copy, but only the reference to what it is about."""

    reference: JSONMapping


def referring_response(data: object, reference: JSONMapping, status: int = 200) -> ReferringResponse:
    response = ReferringResponse(encode_json(data), "application/json", status)
    response.reference = reference
    return response


def takes_idempotency_key(post: Marked) -> Marked:
    """Mark a POST that supports the header. The decorators below do this too."""
    vars(post)[TAKES_KEY] = True
    return post


def idempotent_while(find_visible: Callable[..., object]) -> Callable[[Post], Post]:
    """Run a POST with an `Idempotency-Key` once and answer repeats with the first response.

    The view calls `note_required_role()`, as `lock_matching_agent()` does. Otherwise its response cannot be repeated.

    Args:
        find_visible: Gets the request and what the URL names. It raises NotFound where the caller does not see that
            any longer.
    """

    def decorate(post: Post) -> Post:
        def replay(record: IdempotencyRecord, request: Request, **arguments: str) -> HttpResponse:
            return repeat_response(request, partial(find_visible, request, **arguments), record)

        return run_once_per_key(post, replay)

    return decorate


def idempotent_if(check_rights: Callable[..., object]) -> Callable[[Post], Post]:
    """Do the same as `idempotent_while` for a POST whose rights are no role. `check_rights` checks all of them."""

    def decorate(post: Post) -> Post:
        @wraps(post)
        def post_without_role(*positional: object, **arguments: str) -> HttpResponse:
            note_required_role(None)
            return post(*positional, **arguments)

        return idempotent_while(check_rights)(post_without_role)

    return decorate


def idempotent_by_reference(respond_again: Callable[..., HttpResponse]) -> Callable[[Post], Post]:
    """Do the same as `idempotent_while` for a POST that returns a `referring_response`.

    A stored response would outlive the deletion of the personal data in it.

    Args:
        respond_again: Gets the request, the reference and what the URL names. It checks all rights, and returns the
            response with what is stored now.
    """

    def decorate(post: Post) -> Post:
        def replay(record: IdempotencyRecord, request: Request, **arguments: str) -> HttpResponse:
            if record.role is not None:  # the previous release stored the response of some routes
                raise Conflict(NOT_REPEATABLE_MESSAGE, "not_repeatable")
            response = respond_again(request, json.loads(record.content), **arguments)
            response.status_code = record.status
            return response

        return run_once_per_key(post, replay)

    return decorate


def run_once_per_key(post: Post, replay: Callable[..., HttpResponse]) -> Post:
    """Return a POST that runs once per `Idempotency-Key`. `replay` gets the record, the request and its arguments."""

    @takes_idempotency_key
    @wraps(post)
    def wrapper(view: object, request: Request, **arguments: str) -> HttpResponse:
        act = partial(post, view, request, **arguments)
        # Before anything else: the canonical text of a large body takes longer than the rest of most requests.
        if KEY_HEADER not in request.META:
            return act()
        return run_or_replay(
            request, request_content(request), act, lambda record: replay(record, request, **arguments)
        )

    return wrapper


def find_visible_agent(request: Request, agent_id: str | None = None, **arguments: str) -> None:
    """Raise NotFound if the URL names an agent that the caller may not see."""
    if agent_id is not None and not Agent.objects.for_user(request.user).filter(pk=agent_id).exists():
        raise agent_not_found(agent_id)


idempotent = idempotent_while(find_visible_agent)


def request_content(request: Request) -> str:
    """Return a text that identifies the path and the body of a request."""
    is_form = request.content_type.startswith("multipart/form-data")
    return f"{request.get_full_path()}\n{canonical(form_content(request) if is_form else request.data)}"


def form_content(request: Request) -> JSONValue:
    """Return the fields of a form, and the digests of its files."""
    content: list[JSONValue] = [[name, *values] for name, values in request.POST.lists()]
    for name, files in request.FILES.lists():
        for file in files:
            digest = hashlib.sha256()
            for chunk in file.chunks():
                digest.update(chunk)
            file.seek(0)  # the view reads it again
            content.append([name, file.name, file.content_type, digest.hexdigest()])
    return content


def run_idempotently(request: Request, content: str, act: Callable[[], HttpResponse]) -> HttpResponse:
    """Act, or return the response that the key got first. `content` identifies the path and the body."""
    return run_or_replay(request, content, act, partial(repeat_response, request, None))


def run_or_replay(request: Request, content: str, act: Callable[[], HttpResponse], replay: Replay) -> HttpResponse:
    """Act, or repeat what the record of the key has."""
    key = idempotency_key(request)
    if key is None:
        return act()
    fingerprint = sha256_hex(content)
    with transaction.atomic():
        # In the transaction of the response: if the request fails, the key is free again.
        record = claim_key(request, key, fingerprint)
        if record is not None:
            with collect_required_role() as required:
                response = act()
            return store_response(record, response, required)
    first = find_record(request, key, fingerprint)
    if first is None or not first.has_response:  # deleted just now, or of a request that acts outside of the database
        raise KeyInProgress
    return replayed(replay, first)


def idempotency_key(request: Request) -> str | None:
    """Return the validated `Idempotency-Key` of a request, or None if it has none."""
    key: str | None = request.META.get(KEY_HEADER)
    if key is not None and (not 0 < len(key) <= 255 or not (key.isascii() and key.isprintable())):
        raise ApiError(400, IDEMPOTENCY_KEY_MESSAGE, "invalid_key")
    return key


def stored_key(request: Request, key: str) -> str:
    """Return the key of a record. The end users whom the API keys of a user serve may choose equal keys."""
    served = served_end_users(request.user)
    # No caller can send a tab, so that no key without end users is equal.
    return f"\t{sha256_hex(f'{served} {key}')}" if served else key


def claim_key(request: Request, key: str, fingerprint: str) -> IdempotencyRecord | None:
    """Claim the key for this request, or return None if it has a record.

    Raise KeyInProgress if another request with the key is still in progress after LOCK_TIMEOUT.
    """
    try:
        with transaction.atomic(), short_lock_timeout():
            return IdempotencyRecord.objects.claim(_user_id(request), stored_key(request, key), fingerprint)
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
    """Store a response with the role that its request needed, or the reference of one without a role."""
    content = response.content.decode()
    if isinstance(response, ReferringResponse):
        content, required = canonical(response.reference), RequiredRole()
    IdempotencyRecord.objects.filter(pk=record.pk).update(
        status=response.status_code,
        content=content,
        etag=response.headers.get("ETag", ""),
        role=required.role,
        owner_id=required.owner_id,
    )
    return response


def find_record(request: Request, key: str, fingerprint: str) -> IdempotencyRecord | None:
    """Return the record of a key, or None. Raise Unprocessable if it is that of another request."""
    record = IdempotencyRecord.objects.find(_user_id(request), stored_key(request, key))
    if record is not None and record.fingerprint != fingerprint:
        raise Unprocessable(KEY_REUSED_MESSAGE, "key_reused")
    return record


def replayed(replay: Replay, record: IdempotencyRecord) -> HttpResponse:
    response = replay(record)
    response.headers["Idempotent-Replayed"] = "true"
    return response


def repeat_response(
    request: Request, check_visible: Callable[[], object] | None, record: IdempotencyRecord
) -> HttpResponse:
    """Return a stored response, if the caller may still do what the first request did.

    `check_visible` raises NotFound where the caller may no longer see what the request is about.
    """
    if check_visible is not None:
        check_visible()
    check_still_allowed(request, record)
    return json_text_response(record.content, record.status, record.etag)


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
