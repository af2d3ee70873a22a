"""Open connections to MCP servers: one for each event loop, server and set of headers.

Imports pydantic-ai, which is heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from fastmcp.exceptions import ToolError
from mcp import MCPError
from pydantic_ai.mcp import MCPError as ResourceError

from tools_app.mcp.cached_servers import Server
from tools_app.mcp.connection import INVALID_ANSWER_ERRORS, Toolset, build_toolset, is_lost_connection
from tools_app.mcp.errors import McpError
from tools_app.shared_pool import PoolEntry, PoolLimits, SharedPool

log = logging.getLogger(__name__)

MAX_SESSIONS = 32  # of one event loop
MAX_SESSIONS_OF_TEAM = 24  # with the servers of one team: if these are slow, those of others still have connections
SESSION_IDLE_SECONDS = 60.0  # after which a connection that nobody uses is closed
PING_SECONDS = 5.0  # in which a program has to answer after a call that nobody waits for any more

# A server in one of its revisions, with the headers that are sent.
SessionKey = tuple[str, str, tuple[tuple[str, str], ...]]


@dataclass(kw_only=True)
class Session(PoolEntry):
    """A connection with its users. One of them holds the lock while it connects, and the others wait."""

    toolset: Toolset
    is_open: bool = False


class SessionPool(SharedPool[SessionKey, Session]):
    """The connections of one event loop."""

    def __init__(self) -> None:
        super().__init__(PoolLimits(MAX_SESSIONS, MAX_SESSIONS_OF_TEAM, SESSION_IDLE_SECONDS))
        self.tasks: set[asyncio.Task[None]] = set()  # an event loop keeps no reference to its tasks

    @asynccontextmanager
    async def use(self, server: Server, headers: Mapping[str, str]) -> AsyncIterator[Toolset]:
        """Yield an open connection, which other callers with equal headers share.

        It closes after an error inside of which the connection may be the reason.
        """
        key: SessionKey = (server.key, server.revision, tuple(sorted(headers.items())))
        session = await self.take(
            key,
            server.owner_id,
            lambda: Session(owner_id=server.owner_id, toolset=build_toolset(server, headers)),
        )
        try:
            async with session.lock:
                if not session.is_open:
                    await session.toolset.connect()
                    session.is_open = True
            yield session.toolset
        except Exception as error:
            if not keeps_session(error) or session.toolset.is_session_refused:
                self.discard(key, session)  # the next caller connects again
            raise
        except asyncio.CancelledError:  # also of a call that took too long
            if session.toolset.is_program and session.is_open:
                self._start(self._end_unless_it_answers(key, session))
            raise
        finally:
            self.release(key, session)

    def end(self, session: Session) -> None:
        """Disconnect in the background."""
        if session.is_open:
            session.is_open = False
            self._start(self._disconnect(session))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _end_unless_it_answers(self, key: SessionKey, session: Session) -> None:
        """Let no further call use a program that no longer answers. End it after the calls that still use it.

        A tool that hangs may keep it from all other calls.
        """
        try:
            async with asyncio.timeout(PING_SECONDS):
                await session.toolset.client.ping()
        except Exception as error:  # libraries have errors of many types for a lost connection
            if self.entries.get(key) is session:
                log.warning("A program of an MCP server does not answer and is replaced: %s", type(error).__name__)
                self.close(key)
                self.discard(key, session)

    async def _disconnect(self, session: Session) -> None:
        try:
            await session.toolset.__aexit__(None, None, None)
        except Exception as error:  # the server may be gone
            log.info("A connection to an MCP server ended with an error: %s", type(error).__name__)

    async def close_all(self) -> None:
        """Close all connections, as a loop that ends must."""
        for key in list(self.entries):
            self.close(key)
        while self.tasks:
            await asyncio.wait(self.tasks)


def keeps_session(error: Exception) -> bool:
    """Return whether a connection is still good after an error: the server reported one, or was too slow."""
    if isinstance(error, MCPError | ResourceError):
        return not is_lost_connection(error)
    return isinstance(error, (ToolError, TimeoutError, McpError, *INVALID_ANSWER_ERRORS))


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, SessionPool] = WeakKeyDictionary()


def session_pool() -> SessionPool:
    """Return the connections of the running event loop."""
    return _pools.setdefault(asyncio.get_running_loop(), SessionPool())
