"""Functions that code registers by key, but that are not entries of the registry: no agent refers to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured

Function = TypeVar("Function")


def function_registrar(functions: dict[str, Any], key: str, noun: str) -> Callable[[Function], Function]:
    """Return a decorator that registers a function by a key.

    It raises ImproperlyConfigured, which calls the function by `noun`, if another function has the key.
    """

    def register(function: Function) -> Function:
        if functions.setdefault(key, function) is not function:
            raise ImproperlyConfigured(f"The {noun} '{key}' is registered twice. Give one of them another key.")
        return function

    return register
