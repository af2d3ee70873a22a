"""Interruptions by Ctrl+C and SIGTERM of a command that works on an experiment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

Handler = Callable[[int, FrameType | None], Any] | signal.Handlers

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_unhandled = threading.Event()  # set from a signal until its interruption is handled


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at Ctrl+C, and at a SIGTERM, with which CI ends jobs.

    Only the main thread receives signals. Those that the process ignores, as in the background of a shell, stay so.
    """
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    with handled_by(raise_interruption, heeded):
        try:
            yield
        finally:
            note_handled()


def raise_interruption(number: int, frame: FrameType | None) -> NoReturn:
    _unhandled.set()
    raise KeyboardInterrupt


def note_handled() -> None:
    """Note that an interruption is handled, so that the next error is one of its own."""
    _unhandled.clear()


@contextmanager
def interruption_restored() -> Iterator[None]:
    """Raise KeyboardInterrupt instead of the database error that replaces it.

    Django rolls back a transaction that was interrupted. If that is interrupted too, it raises a database error.
    SQLite calls Python for some functions, such as differences of times, and reports an error of its own for theirs.
    """
    try:
        yield
    except Exception as error:
        if _unhandled.is_set() or is_caused_by_interruption(error):
            raise KeyboardInterrupt from error
        raise


def is_caused_by_interruption(error: BaseException | None) -> bool:
    """Return True if an error was raised while an interruption was handled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


@contextmanager
def interruption_deferred() -> Iterator[None]:
    """Let an interruption wait for the end of the block.

    Django forgets what is to follow a commit if a part of it is interrupted: runs would be stored and not executed.
    """
    received: list[int] = []
    heeded = [number for number in SIGNALS if signal.getsignal(number) is raise_interruption]
    try:
        with handled_by(lambda number, frame: received.append(number), heeded):
            yield
    finally:
        if received:
            raise_interruption(received[0], None)


@contextmanager
def interruptions_ignored() -> Iterator[None]:
    """Ignore further signals in the block."""
    with handled_by(signal.SIG_IGN, SIGNALS):
        yield


@contextmanager
def handled_by(handler: Handler, numbers: Iterable[int]) -> Iterator[None]:
    """Handle signals in another way in the block. Only the main thread receives any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in handlers.items():
            signal.signal(number, before)
