"""Limits of a run: requests, tool calls and tokens.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from pydantic_ai.usage import RunUsage, UsageLimits

from runs_app.requests.options import Options, max_steps

MAX_TOOL_CALLS = 500  # in one run; a model may make any number of calls in one step
MIN_EVENTS_BETWEEN_CHECKS = 100  # of the tokens of an answer, while it streams


class RunLimits(UsageLimits):
    """Limits whose tokens pydantic-ai checks after each answer, but not after each piece of an answer.

    To read the tokens so far, it puts the whole answer together. `record_answer` does this less often.
    """

    def has_token_limits(self) -> bool:
        """Return False, so that pydantic-ai does not check after each piece."""
        return False


def run_limits(options: Options) -> RunLimits:
    """Return the limits of a run, which never exceed those of the settings."""
    return RunLimits(
        request_limit=max_steps(options), tool_calls_limit=MAX_TOOL_CALLS, total_tokens_limit=settings.RUN_MAX_TOKENS
    )


class AnswerGuard:
    """Check of the tokens of one answer while it streams."""

    def __init__(self, limits: RunLimits) -> None:
        self.limits = limits
        self.count = 0
        self.next_check = 1

    def count_event(self, usage: Callable[[], RunUsage]) -> None:
        """Count an event of the answer. Raise UsageLimitExceeded if `usage`, of the run so far, is too much."""
        self.count += 1
        if self.count == self.next_check:
            self.limits.check_tokens(usage())
            # A check takes longer the longer the answer is. Checks at growing distances take linear time together.
            self.next_check += max(MIN_EVENTS_BETWEEN_CHECKS, self.count // 4)
