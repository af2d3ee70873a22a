"""Open connections to MCP servers: one for each event loop, server and set of headers.

Imports pydantic-ai, which is heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from fastmcp.exceptions import ToolError
from mcp import MCPError
from pydantic import ValidationError as PydanticValidationError
from pydantic_ai.mcp import MCPError as ResourceError

from access_app.permissions import SHARED_OWNER
from tools_app.mcp.connection import Toolset, build_toolset, is_lost_connection
from tools_app.mcp.errors import McpError
from tools_app.mcp.table import Server

log = logging.getLogger(__name__)

MAX_SESSIONS = 32  # of one event loop
MAX_SESSIONS_OF_TEAM = 24  # with the servers of one team: if these are slow, those of others still have connections
SESSION_IDLE_SECONDS = 60.0  # after which a connection that nobody uses is closed

# A server in one of its revisions, with the headers that are sent.
SessionKey = tuple[str, str, tuple[tuple[str, str], ...]]


@dataclass
class Session:
    """A connection with its users."""

    toolset: Toolset
    owner_id: str
    users: int = 0
    is_broken: bool = False
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_open: bool = False
    timer: asyncio.TimerHandle | None = None


class SessionPool:
    """The connections of one event loop."""

    def __init__(self) -> None:
        self.sessions: dict[SessionKey, Session] = {}  # the least recently used first
        self.changed = asyncio.Condition()
        self.closing: set[asyncio.Task[None]] = set()  # an event loop keeps no reference to its tasks

    @asynccontextmanager
    async def use(self, server: Server, headers: Mapping[str, str]) -> AsyncIterator[Toolset]:
        """Yield an open connection, which other callers with equal headers share.

        It closes after an error inside of which the connection may be the reason.
        """
        key: SessionKey = (server.key, server.revision, tuple(sorted(headers.items())))
        session = await self._take(key, server, headers)
        try:
            # One caller connects, and the others wait for it.
            async with session.opening:
                if not session.is_open:
                    await session.toolset.connect()
                    session.is_open = True
            yield session.toolset
        except Exception as error:
            session.is_broken |= not keeps_session(error) or session.toolset.is_session_refused
            raise
        finally:
            await self._release(key, session)

    async def _take(self, key: SessionKey, server: Server, headers: Mapping[str, str]) -> Session:
        async with self.changed:
            while key not in self.sessions and (crowd := self._find_crowd(server.owner_id)):
                idle = next((other for other in crowd if self.sessions[other].users == 0), None)
                if idle is not None:
                    self._close(idle)
                else:
                    await self.changed.wait()
            session = self.sessions.pop(key, None) or Session(build_toolset(server, headers), server.owner_id)
            self.sessions[key] = session
            session.users += 1
            if session.timer is not None:
                session.timer.cancel()
                session.timer = None
            return session

    async def _release(self, key: SessionKey, session: Session) -> None:
        session.users -= 1
        if session.is_broken and self.sessions.get(key) is session:
            del self.sessions[key]  # the next caller connects anew
        if session.users == 0:
            if self.sessions.get(key) is not session:
                self._end(session)
            else:
                loop = asyncio.get_running_loop()
                session.timer = loop.call_later(SESSION_IDLE_SECONDS, self._close, key)
        async with self.changed:
            self.changed.notify_all()

    def _find_crowd(self, owner_id: str) -> list[SessionKey]:
        """Return the connections of which one has to close before another one of a team may open."""
        if len(self.sessions) >= MAX_SESSIONS:
            return list(self.sessions)
        own = [key for key, session in self.sessions.items() if session.owner_id == owner_id]
        return own if owner_id != SHARED_OWNER and len(own) >= MAX_SESSIONS_OF_TEAM else []

    def _close(self, key: SessionKey) -> None:
        session = self.sessions.get(key)
        if session is not None and session.users == 0:
            del self.sessions[key]
            self._end(session)

    def _end(self, session: Session) -> None:
        if session.timer is not None:
            session.timer.cancel()
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
        for key in list(self.sessions):
            self._close(key)
        await asyncio.gather(*self.closing)


def keeps_session(error: Exception) -> bool:
    """Return whether a connection is still good after an error: the server reported one, or was too slow."""
    if isinstance(error, MCPError | ResourceError):
        return not is_lost_connection(error)
    return isinstance(error, ToolError | TimeoutError | McpError | PydanticValidationError)


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, SessionPool] = WeakKeyDictionary()


def session_pool() -> SessionPool:
    """Return the connections of the running event loop."""
    return _pools.setdefault(asyncio.get_running_loop(), SessionPool())
