"""The client, once for programs that wait and once for those that do not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Self

import httpx

from agentcms_client.calls import Call, Stale, agent_path, read, wait_for
from agentcms_client.shapes import Agent, Comparison, Job, Version

Changes = Callable[[Agent], dict[str, Any]]

TRIES = 10  # of an edit that others keep overtaking


class Calls:
    """Every operation as a call; the clients send them."""

    def list_agents(self, **query: Any) -> Call:
        return Call("GET", "/api/stored/agents", query)

    def get_agent(self, agent_id: str, **query: Any) -> Call:
        return Call("GET", agent_path(agent_id), query)

    def create_agent(self, agent_id: str, **fields: Any) -> Call:
        return Call("POST", "/api/stored/agents", body={"id": agent_id, **fields})

    def update_agent(self, agent_id: str, etag: str = "", **fields: Any) -> Call:
        return Call("PATCH", agent_path(agent_id), body=fields, headers={"If-Match": etag} if etag else {})

    def delete_agent(self, agent_id: str, *, force: bool = False) -> Call:
        return Call("DELETE", agent_path(agent_id), {"force": force})

    def duplicate_agent(self, agent_id: str, new_id: str, **fields: Any) -> Call:
        return Call("POST", agent_path(agent_id, "duplicate"), body={"id": new_id, **fields})

    def discard_draft(self, agent_id: str) -> Call:
        return Call("POST", agent_path(agent_id, "discard-draft"))

    def undo(self, agent_id: str) -> Call:
        return Call("POST", agent_path(agent_id, "activations", "undo"))

    def list_versions(self, agent_id: str, **query: Any) -> Call:
        return Call("GET", agent_path(agent_id, "versions"), query)

    def get_version(self, agent_id: str, version_id: str) -> Call:
        return Call("GET", agent_path(agent_id, "versions", version_id))

    def create_version(self, agent_id: str, **fields: Any) -> Call:
        return Call("POST", agent_path(agent_id, "versions"), body=fields)

    def update_version(self, agent_id: str, version_id: str, **fields: Any) -> Call:
        return Call("PATCH", agent_path(agent_id, "versions", version_id), body=fields)

    def delete_version(self, agent_id: str, version_id: str) -> Call:
        return Call("DELETE", agent_path(agent_id, "versions", version_id))

    def activate(self, agent_id: str, version_id: str) -> Call:
        return Call("POST", agent_path(agent_id, "versions", version_id, "activate"))

    def restore(self, agent_id: str, version_id: str, **fields: Any) -> Call:
        return Call("POST", agent_path(agent_id, "versions", version_id, "restore"), body=fields)

    def compare(self, agent_id: str, before: str = "live", after: str = "head") -> Call:
        return Call("GET", agent_path(agent_id, "versions", "compare"), {"from": before, "to": after})

    def get_job(self, job_id: str) -> Call:
        return Call("GET", f"/api/jobs/{job_id}")


CALLS = Calls()


class Client:
    """Waits for each answer.

    with Client("http://127.0.0.1:8000", key) as cms:
        cms.update_agent("concierge", instructions="Greet guests by name.")
    """

    def __init__(self, base_url: str, key: str, **options: Any) -> None:
        self.http = httpx.Client(base_url=base_url, headers={"Authorization": f"Bearer {key}"}, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    def send(self, call: Call) -> Any:
        """The answer to a call; what may pass is tried again. Raises ApiError."""
        return self.exchange(call)[0]

    def exchange(self, call: Call) -> tuple[Any, str]:
        """The answer and its ETag."""
        attempt = 0
        while True:
            try:
                response = self.http.request(**call.arguments())
            except httpx.TransportError:
                if (seconds := wait_for(None, attempt)) is None:
                    raise
            else:
                if (seconds := wait_for(response, attempt)) is None:
                    return read(response, attempt), response.headers.get("ETag", "")
            time.sleep(seconds)
            attempt += 1

    def agents(self, **query: Any) -> Iterator[Agent]:
        """Every agent that the filters let pass, however many."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.send(CALLS.list_agents(**{"perPage": 100, **query, "cursor": cursor}))
            yield from page["agents"]
            cursor = page["nextCursor"]

    def versions(self, agent_id: str, per_page: int = 100) -> Iterator[Version]:
        """The whole history, newest first."""
        number, more = 0, True
        while more:
            page = self.send(CALLS.list_versions(agent_id, page=number, perPage=per_page))
            yield from page["versions"]
            number, more = number + 1, page["hasMore"]

    def edit_agent(self, agent_id: str, changes: Changes, **options: Any) -> Agent:
        """Read, change and save; read again where somebody else was quicker.

        `changes` takes the agent and returns the fields to save.
        """
        for _ in range(TRIES - 1):
            agent, etag = self.exchange(CALLS.get_agent(agent_id))
            try:
                return self.update_agent(agent_id, etag, **changes(agent), **options)
            except Stale:
                continue
        agent, etag = self.exchange(CALLS.get_agent(agent_id))
        return self.update_agent(agent_id, etag, **changes(agent), **options)

    def get_agent(self, agent_id: str, **query: Any) -> Agent:
        found: Agent = self.send(CALLS.get_agent(agent_id, **query))
        return found

    def create_agent(self, agent_id: str, **fields: Any) -> Agent:
        made: Agent = self.send(CALLS.create_agent(agent_id, **fields))
        return made

    def update_agent(self, agent_id: str, etag: str = "", **fields: Any) -> Agent:
        changed: Agent = self.send(CALLS.update_agent(agent_id, etag, **fields))
        return changed

    def compare(self, agent_id: str, before: str = "live", after: str = "head") -> Comparison:
        found: Comparison = self.send(CALLS.compare(agent_id, before, after))
        return found

    def job(self, job_id: str) -> Job:
        found: Job = self.send(CALLS.get_job(job_id))
        return found


class AsyncClient:
    """The same without blocking: `async with AsyncClient(url, key) as cms: await cms.get_agent("concierge")`."""

    def __init__(self, base_url: str, key: str, **options: Any) -> None:
        self.http = httpx.AsyncClient(base_url=base_url, headers={"Authorization": f"Bearer {key}"}, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.http.aclose()

    async def send(self, call: Call) -> Any:
        return (await self.exchange(call))[0]

    async def exchange(self, call: Call) -> tuple[Any, str]:
        attempt = 0
        while True:
            try:
                response = await self.http.request(**call.arguments())
            except httpx.TransportError:
                if (seconds := wait_for(None, attempt)) is None:
                    raise
            else:
                if (seconds := wait_for(response, attempt)) is None:
                    return read(response, attempt), response.headers.get("ETag", "")
            await asyncio.sleep(seconds)
            attempt += 1

    async def agents(self, **query: Any) -> AsyncIterator[Agent]:
        cursor: str | None = ""
        while cursor is not None:
            page = await self.send(CALLS.list_agents(**{"perPage": 100, **query, "cursor": cursor}))
            for agent in page["agents"]:
                yield agent
            cursor = page["nextCursor"]

    async def versions(self, agent_id: str, per_page: int = 100) -> AsyncIterator[Version]:
        number, more = 0, True
        while more:
            page = await self.send(CALLS.list_versions(agent_id, page=number, perPage=per_page))
            for version in page["versions"]:
                yield version
            number, more = number + 1, page["hasMore"]

    async def edit_agent(self, agent_id: str, changes: Changes, **options: Any) -> Agent:
        for _ in range(TRIES - 1):
            agent, etag = await self.exchange(CALLS.get_agent(agent_id))
            try:
                return await self.update_agent(agent_id, etag, **changes(agent), **options)
            except Stale:
                continue
        agent, etag = await self.exchange(CALLS.get_agent(agent_id))
        return await self.update_agent(agent_id, etag, **changes(agent), **options)

    async def get_agent(self, agent_id: str, **query: Any) -> Agent:
        found: Agent = await self.send(CALLS.get_agent(agent_id, **query))
        return found

    async def create_agent(self, agent_id: str, **fields: Any) -> Agent:
        made: Agent = await self.send(CALLS.create_agent(agent_id, **fields))
        return made

    async def update_agent(self, agent_id: str, etag: str = "", **fields: Any) -> Agent:
        changed: Agent = await self.send(CALLS.update_agent(agent_id, etag, **fields))
        return changed

    async def compare(self, agent_id: str, before: str = "live", after: str = "head") -> Comparison:
        found: Comparison = await self.send(CALLS.compare(agent_id, before, after))
        return found

    async def job(self, job_id: str) -> Job:
        found: Job = await self.send(CALLS.get_job(job_id))
        return found
