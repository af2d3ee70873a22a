"""The result of a child run, as the run or the background task that waits for it gets it."""

from __future__ import annotations

from typing import NamedTuple, Self

from runs_app.models import AgentRun

AGENT_STOPPED_MESSAGE = "The agent '{key}' was stopped."
DELETED_AGENT_MESSAGE = "The agent was deleted while it worked."


class RunResult(NamedTuple):
    """The end of a run."""

    status: str
    output: str
    error: str

    @classmethod
    def of_row(cls, run: AgentRun) -> Self:
        return cls(run.status, run.output, run.error)


class SubAgentError(Exception):
    """A failure of a sub-agent. The calling model reads the message."""


def child_output(key: str, result: RunResult) -> str:
    """Return the output of a finished child run of the agent `key`. Raise SubAgentError if it has none."""
    if result.status == AgentRun.Status.CANCELLED:
        raise SubAgentError(AGENT_STOPPED_MESSAGE.format(key=key))
    if result.status != AgentRun.Status.SUCCEEDED:
        raise SubAgentError(f"The agent '{key}' could not answer. {result.error}".strip())
    return result.output
