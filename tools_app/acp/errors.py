"""Errors of ACP agents, in sentences for users and models."""

from __future__ import annotations

from agentcms.errors import OutsideError


class AcpError(OutsideError):
    """A failure of an ACP agent. The message contains no secrets."""


class RecordChanged(Exception):
    """The record of an agent was changed while a prompt waited for its turn."""


class AgentEnded(AcpError):
    """The program of an agent ended. `stderr` is the end of what it wrote, without secrets."""

    def __init__(self, title: str, exit_code: int | None, stderr: str = "") -> None:
        reason = "" if exit_code is None else f" (exit {exit_code})"
        super().__init__(f"The ACP agent '{title}' ended{reason}.")
        self.exit_code = exit_code
        self.stderr = stderr
