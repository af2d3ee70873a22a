"""Stored signals as runs are given them, and record them."""

from __future__ import annotations

from collections.abc import Mapping

from agentcms.wire.json_types import JSONMapping, JSONObject
from memory_app.history.signal_markup import AttributeValue, Signal
from memory_app.history.turn_markup import Turn
from memory_app.models import Message

ERROR = "error"  # in the `delivery` of a signal: why it was never seen
ORDER = "attributeOrder"  # the names of the attributes of a signal, as they were sent


def attribute_order(attributes: Mapping[str, AttributeValue]) -> JSONObject:
    """Return the order of attributes for JSON that is stored. PostgreSQL sorts the members of an object."""
    return {ORDER: [*attributes]} if len(attributes) > 1 else {}


def restore_order(attributes: JSONMapping, stored: JSONMapping) -> JSONObject:
    """Return attributes in the order that their stored JSON notes."""
    noted = [name for name in stored.get(ORDER) or [] if name in attributes]
    return {**{name: attributes[name] for name in noted}, **attributes}


def signal_of(message: Message) -> Signal:
    """Return the signal that a message stores."""
    attributes = message.attributes or {}
    stored = attributes.get("signal") or {}
    return Signal(
        type=stored.get("type", "user"),
        contents=message.text,
        id=message.key or "",
        attributes=restore_order(stored.get("attributes") or {}, attributes),
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
        **attribute_order(signal.attributes),
        "turn": turn._asdict() if turn else None,
    }


def signal_of_payload(payload: JSONMapping) -> Signal:
    """Return the signal that a payload describes."""
    names = {"attributes": restore_order(payload["attributes"], payload), "tag_name": payload["tagName"]}
    return Signal(payload["type"], payload["contents"], **names)
