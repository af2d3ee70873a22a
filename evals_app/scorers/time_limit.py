"""The time that a scorer may take for one answer: a judge may never answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from django.conf import settings

from agentcms.plural import pluralize
from evals_app.scorers.results import ScorerError

Result = TypeVar("Result")


async def within_limit(scoring: Awaitable[Result]) -> Result:
    """Return what a scorer returns. Raise ScorerError after `SCORER_TIMEOUT` seconds.

    A function in a thread goes on even then, but nobody waits for it.
    """
    limit: int = settings.SCORER_TIMEOUT
    try:
        async with asyncio.timeout(limit) as time_limit:
            return await scoring
    except TimeoutError:
        if not time_limit.expired():  # that of a provider
            raise
        raise ScorerError(f"The scorer gave no score within {pluralize(limit, 'second')}.") from None
