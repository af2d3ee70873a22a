"""The check whether the reader of an open stream may still read it."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from access_app.caller import Caller
from agentcms.db.connections import return_connection
from memory_app.realms import refresh_credentials
from runs_app.models import AgentRun

ACCESS_CHECK_INTERVAL = 5.0  # seconds; streams that are shorter make no query for it


class StreamAccess:
    """The access of a user to what a stream sends. It is checked again every few seconds while the stream is open.

    `is_visible` returns whether the user may still see the object that is streamed.
    """

    def __init__(self, user: Caller, is_visible: Callable[[], bool]) -> None:
        self.user = user
        self.is_visible = is_visible
        self.checked_at = time.monotonic()

    def has_ended(self) -> bool:
        """Return whether the key was revoked, the account is off, or the user may no longer see the object."""
        if time.monotonic() - self.checked_at < ACCESS_CHECK_INTERVAL:
            return False
        has_ended = not (refresh_credentials(self.user) and self.is_visible())
        return_connection()
        self.checked_at = time.monotonic()  # last: after an error, the next call asks again
        return has_ended


def is_run_visible(user: Caller, run_id: UUID, *, details: bool) -> bool:
    """Return whether a user may see a run, and its details if asked. True for a deleted run: its stream says so."""
    run = AgentRun.objects.for_user(user).with_roles(user).without_large_columns().filter(pk=run_id).first()
    if run is None:
        return not AgentRun.objects.filter(pk=run_id).exists()
    return not details or run.details_visible_to(user)
