"""Errors that stop an agent from being built or a run from continuing. Users may read their messages."""

from __future__ import annotations

from django.core.exceptions import ValidationError


class AgentBuildError(ValidationError):
    """A configuration from which no agent can be built. The message says what to change."""


class RunError(ValidationError):
    """An error that ends a run. The message contains no secrets, because readers of the run see it."""


def find_run_error(error: BaseException | None) -> RunError | None:
    """Return the RunError in the chain of causes. Provider clients wrap errors that connections raise."""
    while error is not None and not isinstance(error, RunError):
        error = error.__cause__ or error.__context__
    return error


class JournalError(Exception):
    """A durable run that cannot continue from its steps. The message names the step, and readers of the run see it."""


class LeaseLost(Exception):
    """Another process may have claimed the run."""


class RunInterrupted(Exception):
    """The process stops, so another one continues the durable run."""
