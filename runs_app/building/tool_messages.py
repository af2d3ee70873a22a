"""Results and errors of tools in words that a model can read and repeat to a user."""

from __future__ import annotations

import logging

from django.core.exceptions import MultipleObjectsReturned, ObjectDoesNotExist
from django.db import Error as DatabaseError
from pydantic import ValidationError

from agentcms.cache import CACHE_ERRORS

log = logging.getLogger(__name__)

MAX_ERROR_LENGTH = 500  # characters

UNREADABLE_VALUE = "(a value that cannot be shown as text)"
UNREADABLE_RESULT_MESSAGE = "The tool returned a value that cannot be shown as text. Its result is not known."
UNKNOWN_ERROR_MESSAGE = "The tool failed because of an error in its code."

# The messages of these errors come from Python or a library: they name classes and say nothing to a user.
ERROR_MESSAGES: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((TimeoutError,), "The tool did not get an answer in time."),
    (CACHE_ERRORS, "The tool could not reach a file or a service that it needs."),
    ((ZeroDivisionError,), "The tool cannot divide by zero."),
    ((ArithmeticError,), "A number is too large for the tool."),
    ((ObjectDoesNotExist,), "The tool did not find what it looked for."),
    (
        (
            TypeError,
            AttributeError,
            NameError,
            KeyError,
            IndexError,
            ImportError,
            AssertionError,
            MemoryError,
            NotImplementedError,
            RecursionError,
            SyntaxError,
            SystemError,
            SystemExit,
            UnicodeError,
            DatabaseError,
            MultipleObjectsReturned,
        ),
        UNKNOWN_ERROR_MESSAGE,
    ),
)


def text_of_unknown_value(value: object) -> str:
    """Return the text of a value that JSON does not have, or words if its text only names its class."""
    text = str(value)
    if not is_technical(text):
        return text
    log.warning("A tool returned a value of type %s, which has no text.", type(value).__qualname__)
    return UNREADABLE_VALUE


def error_message(error: BaseException) -> str:
    """Return the message of an error of a tool. Only messages that were written for people are used."""
    for types, message in ERROR_MESSAGES:
        if isinstance(error, types):
            return message
    if isinstance(error, ValidationError):
        text = " ".join(f"{'.'.join(map(str, issue['loc']))}: {issue['msg']}." for issue in error.errors())
    else:
        text = str(error).strip()
    if not text or is_technical(text) or type(error).__name__ in text:
        return UNKNOWN_ERROR_MESSAGE
    return text[:MAX_ERROR_LENGTH]


def is_technical(text: str) -> bool:
    """Return True for texts such as `<object object at 0x7f2a4c1b8e50>`, with which Python describes values."""
    return " at 0x" in text or "<class '" in text or (text.startswith("<") and text.endswith(">"))
