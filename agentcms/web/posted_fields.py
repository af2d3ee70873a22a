"""The fields of a posted form, for a page that posts them again."""

from __future__ import annotations

from collections.abc import Collection

from django.http import HttpRequest


def posted_fields(request: HttpRequest, without: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return the names and values of a posted form, except the CSRF token and those in `without`."""
    omitted = {"csrfmiddlewaretoken", *without}
    return [(name, str(value)) for name, values in request.POST.lists() if name not in omitted for value in values]
