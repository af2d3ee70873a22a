"""Signals as messages of a model run. The metadata of the message, which no model reads, says which signal it is.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pydantic_ai import ModelRequest, UserPromptPart
from pydantic_ai.messages import ModelMessage

from agentcms.wire.json_types import JSONMapping
from memory_app.history.messages_for_model import PAYLOAD
from memory_app.history.signal_markup import signal_text
from memory_app.history.signal_payloads import signal_of_payload
from memory_app.history.turn_markup import AUTHOR_ATTRIBUTES, Turn

SignalPayload = JSONMapping  # as `take_signals` returns it


def signal_message(payload: SignalPayload) -> ModelRequest:
    """Return a signal as a message of its own."""
    return ModelRequest([UserPromptPart(delivered_text(payload))], metadata={PAYLOAD: payload})


def delivered_payload(message: ModelMessage) -> SignalPayload | None:
    """Return the signal that a message delivers, or None."""
    return (message.metadata or {}).get(PAYLOAD) if isinstance(message, ModelRequest) else None


def delivered_keys(messages: Iterable[ModelMessage]) -> set[str]:
    """Return the keys of the signals among messages."""
    return {payload["key"] for message in messages if (payload := delivered_payload(message)) is not None}


def delivered_text(payload: SignalPayload) -> str:
    """Return what the model reads for a signal."""
    signal = signal_of_payload(payload)
    if not payload["turn"]:
        return signal_text(signal)
    attributes = {name: value for name, value in signal.attributes.items() if name not in AUTHOR_ATTRIBUTES}
    return Turn(**payload["turn"]).wrap(signal_text(replace(signal, attributes=attributes)))
