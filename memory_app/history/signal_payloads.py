"""Stored signals as runs are given them, and record them."""

from __future__ import annotations

from agentcms.wire.json_types import JSONMapping, JSONObject
from memory_app.history.signal_markup import Signal
from memory_app.history.turn_markup import Turn
from memory_app.models import Message

ERROR = "error"  # in the `delivery` of a signal: why it was never seen


def signal_of(message: Message) -> Signal:
    """Return the signal that a message stores."""
    attributes = message.attributes or {}
    stored = attributes.get("signal") or {}
    return Signal(
        type=stored.get("type", "user"),
        contents=message.text,
        id=message.key or "",
        attributes=stored.get("attributes") or {},
        metadata=attributes.get("metadata"),
        tag_name=stored.get("tagName", ""),
    )


def signal_payload(message: Message, turn: Turn | None) -> JSONObject:
    """Return a signal as JSON that a run records."""
    signal = signal_of(message)
    return {
        "key": message.key,
        "type": signal.type,
        "tagName": signal.tag_name,
        "contents": signal.contents,
        "attributes": {**signal.attributes},
        "turn": turn._asdict() if turn else None,
    }


def signal_of_payload(payload: JSONMapping) -> Signal:
    """Return the signal that a payload describes."""
    names = {"attributes": payload["attributes"], "tag_name": payload["tagName"]}
    return Signal(payload["type"], payload["contents"], **names)
