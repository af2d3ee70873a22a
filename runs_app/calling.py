"""The call of a tool, as the tool sees it.

from runs_app.calling import current

@tool()
def refund(order: str, amount: float) -> str:
    return payments.refund(order, amount, idempotency_key=current().idempotency_key)

A tool that needs to ask a person suspends itself. The code after it does not run. It is called again with the answer:

@tool(resume_schema={"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]})
def order_shirt(colour: str) -> str:
    if current().resume_data is None:
        return current().suspend({"question": "Which size?"})
    return shop.order(colour, current().resume_data["size"])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue

MAX_PROGRESS_TEXT = 500  # characters


class CallSuspended(Exception):
    """The tool waits for a person, who reads the payload."""

    def __init__(self, payload: object, resume_schema: JSONMapping | None = None) -> None:
        super().__init__("The tool waits for a person.")
        self.payload = payload
        self.resume_schema = resume_schema


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by the model."""

    run_id: UUID
    root_id: UUID  # the run that a person or a program asked for; that of a sub-agent has another `run_id`
    tool_call_id: str
    attempt: int  # above 1 after the process of a durable run stopped during the call
    idempotency_key: str  # the same in each attempt; other services can recognize a repeated call by it
    resume_data: JSONValue = None  # what a person sent for the last `suspend()` of this call
    report: Callable[[JSONObject], None] | None = None  # of a background task: stores its progress

    def report_progress(self, done: float | None = None, total: float | None = None, text: str = "") -> None:
        """Show people how far the tool is. Only background tasks show it, and only finite numbers."""
        if self.report is not None:
            progress = {"done": finite_number(done), "total": finite_number(total), "text": text[:MAX_PROGRESS_TEXT]}
            self.report({name: value for name, value in progress.items() if value not in (None, "")})

    def suspend(self, payload: object = None, *, resume_schema: JSONMapping | None = None) -> NoReturn:
        """Let the call wait for data from a person, who reads the payload. The run holds no process meanwhile.

        `resume_schema` is the JSON Schema of the data, if it is not that of the tool. Raise CallSuspended, which the
        tool must let through.
        """
        raise CallSuspended(payload, resume_schema)


def finite_number(value: Any) -> float | None:
    """Return a number as JSON has it, or None for infinity, for NaN and for what is not a number."""
    if isinstance(value, int):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


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
