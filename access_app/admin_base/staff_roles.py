"""The roles of staff, asked once for each request."""

from __future__ import annotations

from django.http import HttpRequest

from access_app.permissions import has_role_somewhere
from access_app.role import Role

ATTRIBUTE = "roles_somewhere"  # of the request


def staff_has_role(request: HttpRequest, role: Role) -> bool:
    """Return whether the user has at least the role in some team.

    The menu of the admin asks each page for its permissions, so the question comes about fifteen times per request.
    """
    answers: dict[Role, bool] = request.__dict__.setdefault(ATTRIBUTE, {})
    if role not in answers:
        answers[role] = has_role_somewhere(request.user, role)
    return answers[role]
