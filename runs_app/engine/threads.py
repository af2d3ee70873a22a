"""Blocking work beside the event loop: the database's, and what tools do, each in threads of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Apart, so that slow tools never keep a run from writing down what happened.
_database = ThreadPoolExecutor(8, thread_name_prefix="runs-database")
_tools = ThreadPoolExecutor(32, thread_name_prefix="runs-tools")


async def run_db(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """What a function that asks the database returns; its connection goes back to the pool at once."""
    return await _in(_database, partial(function, *args, **kwargs))


async def run_blocking(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """What a function that may block for long returns. A caller that stops waiting does not stop the function."""
    return await _in(_tools, partial(function, *args, **kwargs))


async def _in(threads: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
    context: Any = copy_context()
    return await asyncio.get_running_loop().run_in_executor(threads, context.run, _with_connections_returned, work)


def _with_connections_returned(work: Callable[[], Result]) -> Result:
    close_old_connections()
    try:
        return work()
    except (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration) as error:
        # Raised into the event loop, the first three would end it, and nobody would ever hear of the last.
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
    finally:
        close_old_connections()
