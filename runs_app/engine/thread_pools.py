"""Thread pools for blocking work of the event loop: for the database, for tools, and for what takes milliseconds."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from django.db import close_old_connections

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

MAX_AWAITED_CALLS = 32  # of one event loop that somebody waits for
MAX_ABANDONED_CALLS = 96  # that go on after their callers have gone, and take no thread from other calls
ENDING_ERROR = "The function tried to end its process or its caller."
BREAKING_OFF_ERROR = "The function broke off its work, although nobody has cancelled it."
TOOL_THREADS = MAX_AWAITED_CALLS + MAX_ABANDONED_CALLS

# Separate pools: slow tools must not delay the writes of a run, nor the runs of others that call no tool.
_database_pool = ThreadPoolExecutor(8, thread_name_prefix="runs-database")
_tool_pool = ThreadPoolExecutor(TOOL_THREADS, thread_name_prefix="runs-tools")
_brief_pool = ThreadPoolExecutor(16, thread_name_prefix="runs-brief")

_abandoned: set[Future[Any]] = set()
_tool_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def run_db(
    function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function that queries the database. Its connection returns to the pool afterwards."""
    return await _run_in(_database_pool, partial(function, *args, **kwargs))


async def run_blocking(
    function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function that may block for long. Cancelling the caller does not stop the function.

    Its slot is free then, although it keeps its thread: functions that hang must not hold up the others.
    """
    async with _tool_slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MAX_AWAITED_CALLS)):
        future = _submit(_tool_pool, partial(function, *args, **kwargs))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if future.running():
                _report_abandoned(future, function)
            raise


async def run_function(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Await a registered function that is asynchronous. Call any other in a thread: it may block for long."""
    if inspect.iscoroutinefunction(function):
        return await keep_loop_running(function(**arguments))
    return await run_blocking(function, **arguments)


async def keep_loop_running(call: Awaitable[Result]) -> Result:
    """Await an asynchronous function of an application.

    Raise RuntimeError instead of SystemExit and others, which would end the event loop with all its runs.
    """
    try:
        return await call
    except (Exception, GeneratorExit):  # Python itself raises the latter where it drops the call
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError(BREAKING_OFF_ERROR) from error
    except BaseException as error:
        raise RuntimeError(ENDING_ERROR) from error


async def run_briefly(
    function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function that ends soon, such as a conversion or a processor. Slow tools do not delay it."""
    return await _run_in(_brief_pool, partial(function, *args, **kwargs))


async def _run_in(pool: ThreadPoolExecutor, call: Callable[[], Result]) -> Result:
    return await asyncio.wrap_future(_submit(pool, call))


def _submit(pool: ThreadPoolExecutor, call: Callable[[], Result]) -> Future[Result]:
    return pool.submit(copy_context().run, _with_connections_returned, call)


def _report_abandoned(future: Future[Result], function: Callable[..., object]) -> None:
    """Log a function that goes on although nobody waits for it any more. Until it ends it counts as abandoned."""
    _abandoned.add(future)
    future.add_done_callback(_abandoned.discard)
    name, count = getattr(function, "__qualname__", repr(function)), len(_abandoned)
    if count <= MAX_ABANDONED_CALLS:
        log.warning("%s goes on after its call was given up, with %d such functions. Give it a timeout.", name, count)
    else:
        log.error(
            "%s goes on after its call was given up, and takes the thread of other tools, because %d functions do "
            "so already. Give tools that wait a timeout, and restart this process.",
            name,
            count - 1,
        )


def _with_connections_returned(call: Callable[[], Result]) -> Result:
    close_old_connections()
    try:
        return call()
    except StopIteration as error:  # it would be lost without a trace
        raise RuntimeError(ENDING_ERROR) from error
    except Exception:
        raise
    except BaseException as error:  # as of a package written in Rust that panics: it would end the event loop
        raise RuntimeError(ENDING_ERROR) from error
    finally:
        close_old_connections()
