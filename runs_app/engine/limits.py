"""Limits of a run: requests, tool calls and tokens.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from django.conf import settings
from pydantic_ai.usage import UsageLimits

from runs_app.requests.options import Options, max_steps

MAX_TOOL_CALLS = 500  # in one run; a model may make any number of calls in one step


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
