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
    reject_bare_decorator(key)

    def register(function: Function) -> Function:
        if functions.setdefault(key, function) is not function:
            raise ImproperlyConfigured(f"The {noun} '{key}' is registered twice. Give one of them another key.")
        return function

    return register


def reject_bare_decorator(key: object) -> None:
    """Raise TypeError if the key is a function: a decorator without parentheses would register nothing."""
    if callable(key):
        name = getattr(key, "__name__", "")
        raise TypeError(f"The decorator of {name} needs parentheses, such as @tool() or @stop_condition('{name}').")
