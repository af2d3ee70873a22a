"""Views that show a form and store it."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.db import transaction
from django.http import HttpRequest, HttpResponse

_P = ParamSpec("_P")


def atomic_post(
    view: Callable[Concatenate[HttpRequest, _P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, _P], HttpResponse]:
    """Run a view in a transaction if the request is a POST.

    SQLite would let other requests, which only show the form, wait for the writers before them.
    """

    @wraps(view)
    def wrapper(request: HttpRequest, /, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponse:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        with transaction.atomic():
            return view(request, *args, **kwargs)

    return wrapper
