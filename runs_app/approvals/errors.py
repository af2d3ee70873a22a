"""Errors of decisions about calls that wait for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentcms.errors import ApiError, Conflict
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError

if TYPE_CHECKING:
    from runs_app.models import PendingCall


class AlreadyDecided(Conflict):
    """Somebody else has decided the call, or the same person differently. `call` says who, when and how."""

    def __init__(self, call: PendingCall) -> None:
        self.call = call
        time = f"{call.decided_at:%Y-%m-%d %H:%M} UTC" if call.decided_at else "an unknown time"
        decision = f"{call.get_state_display().lower()} by {call.decided_by_name or 'somebody'} at {time}"
        super().__init__(f"This call was already {decision}.", "already_decided")

    @property
    def body(self) -> JSONObject:
        decided = {
            "state": self.call.state,
            "decidedBy": self.call.decided_by_name or None,
            "decidedAt": self.call.decided_at,
        }
        return {**super().body, **decided}


class CallExpired(ApiError):
    """Nobody decided the call in time."""

    def __init__(self, call: PendingCall) -> None:
        self.call = call
        super().__init__(410, "This call has expired, because nobody decided in time. Run the agent again.", "expired")


class ArgumentsChanged(Conflict):
    """The call is not the one that the reader saw."""

    def __init__(self, call: PendingCall) -> None:
        self.call = call
        message = "The tool or its arguments are not those that you saw. Read the call again, then decide."
        super().__init__(message, "arguments_changed")


class NotSuspended(Conflict):
    """No call waits for this decision."""

    def __init__(self, message: str = "This run does not wait for a decision.") -> None:
        super().__init__(message, "not_suspended")


class SeveralCalls(Conflict):
    """The run waits for several calls, and the request does not say which is meant. `call_ids` are their IDs."""

    def __init__(self, call_ids: list[str]) -> None:
        self.call_ids = call_ids
        super().__init__(
            f"This run waits for several calls. Send one of their IDs as toolCallId: {', '.join(call_ids)}.",
            "several_calls",
        )

    @property
    def body(self) -> JSONObject:
        return {**super().body, "toolCallIds": self.call_ids}


class InvalidDecision(ConfigError):
    """A decision that does not fit its call. The issues have wire paths, such as `arguments.amount`."""
