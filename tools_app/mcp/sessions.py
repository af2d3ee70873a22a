"""Open connections to MCP servers: one for each event loop, server and set of headers.

Imports pydantic-ai, which is heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from fastmcp.exceptions import ToolError
from mcp import MCPError
from pydantic_ai.mcp import MCPError as ResourceError

from tools_app.mcp.connection import INVALID_ANSWER_ERRORS, Toolset, build_toolset, is_lost_connection
from tools_app.mcp.errors import McpError
from tools_app.mcp.table import Server
from tools_app.shared_pool import PoolEntry, PoolLimits, SharedPool

log = logging.getLogger(__name__)

MAX_SESSIONS = 32  # of one event loop
MAX_SESSIONS_OF_TEAM = 24  # with the servers of one team: if these are slow, those of others still have connections
SESSION_IDLE_SECONDS = 60.0  # after which a connection that nobody uses is closed

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
        self.closing: set[asyncio.Task[None]] = set()  # an event loop keeps no reference to its tasks

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
                self.discard(key, session)  # the next caller connects anew
            raise
        finally:
            self.release(key, session)

    def end(self, session: Session) -> None:
        """Disconnect in the background."""
        if session.is_open:
            session.is_open = False
            task = asyncio.get_running_loop().create_task(self._disconnect(session))
            self.closing.add(task)
            task.add_done_callback(self.closing.discard)

    async def _disconnect(self, session: Session) -> None:
        try:
            await session.toolset.__aexit__(None, None, None)
        except Exception as error:  # the server may be gone
            log.info("A connection to an MCP server ended with an error: %s", type(error).__name__)

    async def close_all(self) -> None:
        """Close all connections, as a loop that ends must."""
        for key in list(self.entries):
            self.close(key)
        await asyncio.gather(*self.closing)


def keeps_session(error: Exception) -> bool:
    """Return whether a connection is still good after an error: the server reported one, or was too slow."""
    if isinstance(error, MCPError | ResourceError):
        return not is_lost_connection(error)
    return isinstance(error, (ToolError, TimeoutError, McpError, *INVALID_ANSWER_ERRORS))


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, SessionPool] = WeakKeyDictionary()


def session_pool() -> SessionPool:
    """Return the connections of the running event loop."""
    return _pools.setdefault(asyncio.get_running_loop(), SessionPool())
