"""Outages of the database: reads that survive a short one, such as a restart, and loops that stop for nothing else."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections

log = logging.getLogger(__name__)

OUTAGE_ERRORS = (OperationalError, InterfaceError)
OUTAGE_TIMEOUT = 10.0  # seconds; proxies close connections on which nothing comes for longer
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
        OperationalError or InterfaceError: The last one, after `OUTAGE_TIMEOUT`.
    """
    deadline = time.monotonic() + OUTAGE_TIMEOUT
    while True:
        try:
            return read(*args, **kwargs)
        except OUTAGE_ERRORS as error:
            if stopping.is_set() or time.monotonic() >= deadline:
                raise
            log.warning("The database is not available. A reader tries again: %s", error)
        close_old_connections()  # those that are broken
        stopping.wait(RETRY_INTERVAL)


@contextmanager
def logging_errors(logger: logging.Logger, message: str, *arguments: object) -> Iterator[None]:
    """Log an unexpected error of the block with this message, so that other rows can be processed after it.

    An outage is raised: it would be the same for the others.
    """
    try:
        yield
    except OUTAGE_ERRORS:
        raise
    except Exception:
        logger.exception(message, *arguments)
