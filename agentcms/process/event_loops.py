"""Event loops in threads of their own."""

from __future__ import annotations

import asyncio
import logging
import os
import threading

log = logging.getLogger(__name__)


def start_loop(name: str) -> asyncio.AbstractEventLoop:
    """Start an event loop in a thread of this name, and return it. If it breaks off, it ends the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=run_loop, args=[loop], name=name, daemon=True).start()
    return loop


def run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop until it is stopped. End the process if a task raises SystemExit or KeyboardInterrupt.

    The work on the loop would never end otherwise: the process goes on to renew its leases, so that no other takes it.
    """
    try:
        loop.run_forever()
    except BaseException:
        log.critical("An event loop broke off, so this process ends.", exc_info=True)
        logging.shutdown()
        os._exit(1)
