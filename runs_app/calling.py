"""The call of a tool, as the tool sees it.

from runs_app.calling import current

@tool()
def refund(order: str, amount: float) -> str:
    return payments.refund(order, amount, idempotency_key=current().idempotency_key)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by the model."""

    run_id: UUID
    root_id: UUID  # the run that a person or a program asked for; that of a sub-agent has another `run_id`
    tool_call_id: str
    attempt: int  # above 1 after the process of a durable run stopped during the call
    idempotency_key: str  # the same in each attempt; other services can recognize a repeated call by it


_current_call: ContextVar[ToolCall | None] = ContextVar("current_tool_call", default=None)


def current() -> ToolCall:
    """Return the current tool call. Raise RuntimeError outside of one."""
    call = _current_call.get()
    if call is None:
        raise RuntimeError("current() is only available in a tool while an agent calls it.")
    return call


@contextmanager
def tool_call(call: ToolCall) -> Iterator[None]:
    """Make a call the current one during the block."""
    token = _current_call.set(call)
    try:
        yield
    finally:
        _current_call.reset(token)
