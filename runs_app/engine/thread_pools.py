"""Thread pools for blocking work of the event loop: for the database, for tools, and for what takes milliseconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

TOOL_THREADS = 32
MAX_ABANDONED_CALLS = 96  # that go on in threads of their own after their callers have gone

# Separate pools: slow tools must not delay the writes of a run, nor the runs of others that call no tool.
_database_pool = ThreadPoolExecutor(8, thread_name_prefix="runs-database")
_tool_pool = ThreadPoolExecutor(TOOL_THREADS, thread_name_prefix="runs-tools")
_brief_pool = ThreadPoolExecutor(16, thread_name_prefix="runs-brief")

_abandoned: set[Future[Any]] = set()
_abandoned_lock = Lock()


async def run_db(
    function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function that queries the database. Its connection returns to the pool afterwards."""
    return await _run_in(_database_pool, partial(function, *args, **kwargs))


async def run_blocking(
    function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function that may block for long. Cancelling the caller does not stop the function.

    Another thread then takes the place of its thread: functions that hang must not keep the threads from the others.
    """
    future = _submit(_tool_pool, partial(function, *args, **kwargs))
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if future.running():
            _replace_thread(future, function)
        raise


async def run_briefly(
    function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function that ends soon, such as a conversion or a processor. Slow tools do not delay it."""
    return await _run_in(_brief_pool, partial(function, *args, **kwargs))


async def _run_in(pool: ThreadPoolExecutor, call: Callable[[], Result]) -> Result:
    return await asyncio.wrap_future(_submit(pool, call))


def _submit(pool: ThreadPoolExecutor, call: Callable[[], Result]) -> Future[Result]:
    return pool.submit(copy_context().run, _with_connections_returned, call)


def _replace_thread(future: Future[Result], function: Callable[..., object]) -> None:
    """Add a thread until a function ends for which nobody waits any more, unless there are too many of these."""
    name = getattr(function, "__qualname__", repr(function))
    with _abandoned_lock:
        count = len(_abandoned) + 1
        if count > MAX_ABANDONED_CALLS:
            log.error(
                "%s goes on after its call was given up, and takes the thread of other tools, because %d functions do "
                "so already. Give tools that wait a timeout, and restart this process.",
                name,
                count - 1,
            )
            return
        _abandoned.add(future)
        _tool_pool._max_workers = TOOL_THREADS + count
    log.warning("%s goes on after its call was given up, with %d such functions. Give it a timeout.", name, count)
    future.add_done_callback(_take_thread_back)
    _tool_pool.submit(int)  # the pool starts a thread only with new work


def _take_thread_back(future: Future[Result]) -> None:
    with _abandoned_lock:
        _abandoned.discard(future)
        _tool_pool._max_workers = TOOL_THREADS + len(_abandoned)


def _with_connections_returned(call: Callable[[], Result]) -> Result:
    close_old_connections()
    try:
        return call()
    except (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration) as error:
        # The first three would end the event loop. The last would be lost without a trace.
        raise RuntimeError("The function tried to end its process or its caller.") from error
    finally:
        close_old_connections()
