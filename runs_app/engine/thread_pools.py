"""Thread pools for blocking work of the event loop: for the database, for tools, and for what takes milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Separate pools: slow tools must not delay the writes of a run, nor the runs of others that call no tool.
_database_pool = ThreadPoolExecutor(8, thread_name_prefix="runs-database")
_tool_pool = ThreadPoolExecutor(32, thread_name_prefix="runs-tools")
_brief_pool = ThreadPoolExecutor(16, thread_name_prefix="runs-brief")


async def run_db(
    function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function that queries the database. Its connection returns to the pool afterwards."""
    return await _run_in(_database_pool, partial(function, *args, **kwargs))


async def run_blocking(
    function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function that may block for long. Cancelling the caller does not stop the function."""
    return await _run_in(_tool_pool, partial(function, *args, **kwargs))


async def run_briefly(
    function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call a function that ends soon, such as a conversion or a processor. Slow tools do not delay it."""
    return await _run_in(_brief_pool, partial(function, *args, **kwargs))


async def _run_in(pool: ThreadPoolExecutor, call: Callable[[], Result]) -> Result:
    context = copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, context.run, _with_connections_returned, call)


def _with_connections_returned(call: Callable[[], Result]) -> Result:
    close_old_connections()
    try:
        return call()
    except (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration) as error:
        # The first three would end the event loop. The last would be lost without a trace.
        raise RuntimeError("The function tried to end its process or its caller.") from error
    finally:
        close_old_connections()
