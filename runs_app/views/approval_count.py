"""The number of calls that wait for a decision of the user, in the header of each page."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from access_app.caller import Caller
from agentcms.web.template_context import TemplateContext
from runs_app.frequent_queries import calls_to_decide

MAX_COUNT = 99  # the highest number in the header


def count_decidable(user: Caller) -> int:
    """Return the number of calls that a user of the pages may decide, at most `MAX_COUNT` + 1. One query.

    Every page shows it. Django would spend a fifth of the time of a page on compiling this query.
    """
    return len(calls_to_decide(MAX_COUNT + 1, user=user))


def waiting_approvals(request: HttpRequest) -> TemplateContext:
    """Return the number in the header of each page as a context variable. Fragments do not query it."""
    return {"approval_count": SimpleLazyObject(partial(count_decidable, request.user))}
