"""Signals of calls that wait for people. Both are sent after the commit, with `call`."""

from __future__ import annotations

from django.dispatch import Signal

approval_requested = Signal()  # a call waits for a person; not sent for calls that wait for a child run
approval_decided = Signal()  # a call was decided, has expired, or was cancelled with its run
