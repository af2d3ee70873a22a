"""The fields of a posted form, for a page that posts them again."""

from __future__ import annotations

from collections.abc import Collection

from django.http import HttpRequest

# The user for whom the page with the form was rendered. Scripts add it.
PAGE_USER_FIELD = "page_user"


def posted_fields(request: HttpRequest, without: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return the names and values of a posted form, except those of its page and those in `without`."""
    omitted = {"csrfmiddlewaretoken", PAGE_USER_FIELD, *without}
    return [(name, str(value)) for name, values in request.POST.lists() if name not in omitted for value in values]
