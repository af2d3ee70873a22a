"""Threads with messages of a known size."""

import pytest

from memory_app.history.messages import append_messages, new_messages
from memory_app.models import Thread
from memory_app.observational.limits import ObservationLimits

LIMITS = ObservationLimits(
    message_tokens=100, buffer_tokens=20, kept_tokens=20, block_tokens=120, observation_tokens=60
)


@pytest.fixture
def thread():
    return Thread.objects.create(key="t", realm="u1", agent_key="concierge")


def question(text, size=10):
    """Return the message of a user with this number of tokens."""
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text.ljust(size * 4, ".")}]}


def answered(text, size=10):
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text.ljust(size * 4, ".")}]}


def called(call_id, size=10):
    part = {"part_kind": "tool-call", "tool_call_id": call_id, "tool_name": "", "args": "x" * size * 4}
    return {"kind": "response", "parts": [part]}


def returned(call_id, size=10):
    part = {"part_kind": "tool-return", "tool_call_id": call_id, "tool_name": "", "content": "y" * size * 4}
    return {"kind": "request", "parts": [part]}


def append(thread, *messages):
    return append_messages(thread, new_messages(messages))


def turns(count, size=10):
    """Return this number of questions with their answers."""
    pairs = [(question(f"Q{number}", size), answered(f"A{number}", size)) for number in range(count)]
    return [message for pair in pairs for message in pair]
