"""Work after a commit whose failure must not look like a failure of what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from django.db import transaction

_P = ParamSpec("_P")


def call_after_commit(function: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Call a function after the current transaction is committed. If it raises an error, the error is logged.

    The code that committed goes on, and so do other functions of the same transaction. Use it instead of
    `transaction.on_commit(…, robust=True)`: Django logs the `__qualname__` of a function that failed. A
    `functools.partial` has none, so that the report of its error would itself raise an AttributeError.

    Args:
        function: Called with the other arguments.
    """

    def call() -> None:
        function(*args, **kwargs)

    # Django logs this name, which would be that of the inner function for each.
    call.__qualname__ = getattr(function, "__qualname__", repr(function))
    transaction.on_commit(call, robust=True)
