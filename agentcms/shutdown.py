"""Shutdown callbacks of a web process.

The server waits for open responses before it stops. Code that keeps long streams open registers a callback here
that ends them.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

SHUTDOWN_SIGNALS = {signal.SIGTERM, signal.SIGINT}

_callbacks: list[Callable[[], None]] = []


def on_shutdown(callback: Callable[[], None]) -> Callable[[], None]:
    """Register a function to call at shutdown. Functions run in the order of registration."""
    _callbacks.append(callback)
    return callback


def install_signal_listener() -> None:
    """Start a thread that runs the callbacks at a stop signal. Signal handlers of the server keep working."""
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may set a wakeup file descriptor
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=run_callbacks_on_signal, args=(receiver, sender), name="shutdown", daemon=True).start()


def run_callbacks_on_signal(receiver: socket.socket, sender: socket.socket) -> None:
    """Wait for a stop signal and run the callbacks."""
    # The thread refers to `sender`: a closed socket would free its file descriptor for another file, and Python
    # would write the signals to that file.
    while not SHUTDOWN_SIGNALS & set(receiver.recv(64)):
        pass
    for callback in _callbacks:
        try:
            callback()
        except Exception:
            log.exception("A shutdown callback failed.")
