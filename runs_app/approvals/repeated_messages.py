"""Messages with an idempotency key that have answered a waiting tool: a repeated one finds the run of its answer."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from agentcms.errors import KEY_REUSED_MESSAGE, Unprocessable
from agentcms.wire.canonical import canonical, sha256_hex
from runs_app.models import AgentRun, PendingCall
from runs_app.requests.messages import InputMessage


class MessageKey(NamedTuple):
    """The idempotency key of a message. `id` is the ID that a run with this key would have."""

    id: UUID
    digest: str


def message_key(key_id: UUID, agent_id: str, thread: str, resource: str, messages: list[InputMessage]) -> MessageKey:
    """Return the key of a message of a conversation."""
    return MessageKey(key_id, sha256_hex(canonical([agent_id, thread, resource, messages])))


def find_answered_call(key: MessageKey) -> tuple[AgentRun, PendingCall] | None:
    """Return the call that a message with this key has answered, with its run.

    Raise Unprocessable if that was another message.
    """
    call = PendingCall.objects.filter(message_key=key.id).first()
    if call is None:
        return None
    if call.message_digest != key.digest:
        raise Unprocessable(KEY_REUSED_MESSAGE, "key_reused")
    run = AgentRun.objects.filter(pk=call.root_id).first()  # deleted with its agent otherwise
    return None if run is None else (run, call)


def save_key(call: PendingCall, key: MessageKey) -> None:
    """Note the key of the message that has answered a call."""
    PendingCall.objects.filter(pk=call.pk).update(message_key=key.id, message_digest=key.digest)
