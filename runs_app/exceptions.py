"""Errors that stop an agent from being built or a run from continuing. Users may read their messages."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError

from agentcms.outbound.addresses import AddressRefused


class AgentBuildError(ValidationError):
    """A configuration from which no agent can be built. The message says what to change."""


class RunError(ValidationError):
    """An error that ends a run. The message contains no secrets, because readers of the run see it."""


def find_run_error(error: BaseException | None) -> RunError | AddressRefused | None:
    """Return the RunError or the AddressRefused in the chain of causes. Clients wrap errors of their connections."""
    while error is not None and not isinstance(error, (RunError, AddressRefused)):
        error = error.__cause__ or error.__context__
    return error


class JournalError(Exception):
    """A durable run that cannot continue from its steps. The message names the step, and readers of the run see it."""


class ChildSuspended(Exception):
    """The child run of a tool call waits for a person, so the run that made the call waits too."""

    def __init__(self, child_id: UUID) -> None:
        super().__init__(child_id)
        self.child_id = child_id


class RunLeaseLost(Exception):
    """Another process may have claimed the run."""


class RunInterrupted(Exception):
    """The process stops, so another one continues the durable run."""
