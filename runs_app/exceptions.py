"""What stops an agent from being built or a run from going on, in sentences that its reader may see."""

from __future__ import annotations

from django.core.exceptions import ValidationError


class AgentBuildError(ValidationError):
    """A configuration that no agent can be made of; `code` says why and the message what to do."""


class RunError(ValidationError):
    """A run cannot go on. The message has no secrets: it is for whoever reads the run."""


def find_run_fault(error: BaseException | None) -> RunError | None:
    """The fault that an error was made of: the clients of providers wrap what a connection raises."""
    while error is not None and not isinstance(error, RunError):
        error = error.__cause__ or error.__context__
    return error
