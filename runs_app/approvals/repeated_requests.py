"""Requests with an idempotency key that have decided a waiting call: a repeated one finds that call.

Without the key, a repeat could decide the next call of the run: a message answers any question, a decision need not
name its call, and some models repeat the IDs of calls.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from agentcms.errors import KEY_REUSED_MESSAGE, KeyInProgress, Unprocessable
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONObject
from runs_app.models import AgentRun, PendingCall
from runs_app.requests.messages import InputMessage


class RequestKey(NamedTuple):
    """The idempotency key of a request. `id` is the ID that a run with this key would have."""

    id: UUID
    digest: str


def message_key(key_id: UUID, agent_id: str, thread: str, resource: str, messages: list[InputMessage]) -> RequestKey:
    """Return the key of a message of a conversation."""
    return RequestKey(key_id, sha256_hex(canonical([agent_id, thread, resource, messages])))


def decision_key(key_id: UUID, path: str, body: JSONObject) -> RequestKey:
    """Return the key of a decision."""
    return RequestKey(key_id, sha256_hex(canonical([path, body])))


def find_call_of_key(key: RequestKey) -> PendingCall | None:
    """Return the call that a request with this key has decided. Raise Unprocessable if that was another request."""
    call = PendingCall.objects.filter(message_key=key.id).first()
    if call is not None and call.message_digest != key.digest:
        raise Unprocessable(KEY_REUSED_MESSAGE, "key_reused")
    return call


def find_answered_call(key: RequestKey) -> tuple[AgentRun, PendingCall] | None:
    """Return the call that a message with this key has answered, with its run. Raise as `find_call_of_key` does."""
    call = find_call_of_key(key)
    if call is None:
        return None
    run = AgentRun.objects.filter(pk=call.root_id).first()  # deleted with its agent otherwise
    return None if run is None else (run, call)


def save_key(call: PendingCall, key: RequestKey) -> None:
    """Note the key of the request that decides a call. The caller has locked the run.

    Raise KeyInProgress if an equal request has just decided another call. Repeated once more, it finds that call.
    """
    if find_call_of_key(key) is not None:
        raise KeyInProgress
    PendingCall.objects.filter(pk=call.pk).update(message_key=key.id, message_digest=key.digest)
