"""What a web process does when it is asked to stop, before its server ends it.

The server waits for open answers first, and a stream may be open for long: whoever keeps one registers here.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}

_callbacks: list[Callable[[], None]] = []


def on_shutdown(act: Callable[[], None]) -> Callable[[], None]:
    """Register what is to be done, in the order of registration."""
    _callbacks.append(act)
    return act


def install_signal_listener() -> None:
    """Notice the signals beside whoever handles them; once in a process."""
    if threading.current_thread() is not threading.main_thread():
        return  # there it is a guest, who has no say in signals
    told, telling = socket.socketpair()
    telling.setblocking(False)
    signal.set_wakeup_fd(telling.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=run_callbacks_on_signal, args=(told, telling), name="stopping", daemon=True).start()


def run_callbacks_on_signal(told: socket.socket, telling: socket.socket) -> None:
    # `telling` is held here: closed, it would lose its number to another file, which the signals were written to.
    while not STOP_SIGNALS & set(told.recv(64)):
        pass
    for act in _callbacks:
        try:
            act()
        except Exception:
            log.exception("Something could not be stopped in good order.")
