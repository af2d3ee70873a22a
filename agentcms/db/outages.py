"""Reads that survive a short outage of the database, such as a restart or the failover to another server."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections

log = logging.getLogger(__name__)

OUTAGE_ERRORS = (OperationalError, InterfaceError)
OUTAGE_PATIENCE = 10.0  # seconds; proxies close connections on which nothing comes for longer
RETRY_INTERVAL = 0.25  # seconds

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def read_through_outage(
    stopping: threading.Event,
    read: Callable[_Parameters, _Result],
    *args: _Parameters.args,
    **kwargs: _Parameters.kwargs,
) -> _Result:
    """Call a function that only reads the database. Repeat it while the database is unavailable.

    Args:
        stopping: Set while this process stops. Then nothing is repeated.
        read: Called with the other arguments.

    Raises:
        OperationalError or InterfaceError: The last one, after `OUTAGE_PATIENCE`.
    """
    deadline = time.monotonic() + OUTAGE_PATIENCE
    while True:
        try:
            return read(*args, **kwargs)
        except OUTAGE_ERRORS as error:
            if stopping.is_set() or time.monotonic() >= deadline:
                raise
            log.warning("The database is not available. A reader tries again: %s", error)
        close_old_connections()  # those that are broken
        stopping.wait(RETRY_INTERVAL)
