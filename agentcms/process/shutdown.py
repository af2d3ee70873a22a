"""Shutdown callbacks of a web process.

The server waits for open responses before it stops. Code that keeps long streams open registers a callback here
that ends them.
"""

from __future__ import annotations

import logging
import os
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
    """Start a thread that runs the callbacks at a stop signal. The server's handlers of signals keep working.

    Call this after the event loop of the server has installed its handlers.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    # Python writes the number of each signal to one file descriptor. The event loop waits for it too.
    server = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    arguments = (receiver, sender, server)
    threading.Thread(target=run_callbacks_on_signal, args=arguments, name="shutdown", daemon=True).start()


def run_callbacks_on_signal(receiver: socket.socket, sender: socket.socket, server: int) -> None:
    """Pass signals on to the file descriptor of the server, and run the callbacks at the first stop signal."""
    # The thread refers to `sender`: a closed socket would free its file descriptor for another file, and Python
    # would write the signals to that file.
    while True:
        signals = receiver.recv(64)
        if server != -1:
            os.write(server, signals)
        if SHUTDOWN_SIGNALS & set(signals):
            break
    for callback in _callbacks:
        try:
            callback()
        except Exception:
            log.exception("A shutdown callback failed.")
    # Later signals too, such as a second Ctrl-C, reach the server only through this thread.
    while server != -1:
        os.write(server, receiver.recv(64))
