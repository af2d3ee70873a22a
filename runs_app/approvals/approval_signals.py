"""Signals of calls that wait for people, each with `call`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.dispatch import Signal

from agentcms.db.after_commit import call_after_commit

if TYPE_CHECKING:
    from runs_app.models import PendingCall

# Both are sent after the commit.
approval_requested = Signal()  # a call waits for a person; not sent for calls that wait for a child run
approval_decided = Signal()  # a call was decided, has expired, or was cancelled with its run

approval_stored = Signal()  # sent before either, in the transaction that stores the call


def announce_call(signal: Signal, call: PendingCall) -> None:
    """Send one of the signals after the commit. What must not be lost with this process is stored now."""
    approval_stored.send(type(call), call=call)
    call_after_commit(signal.send, type(call), call=call)
