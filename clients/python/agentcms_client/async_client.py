"""The asynchronous client. It has the methods of the synchronous one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Any, Self

import httpx

from agentcms_client.calls import CALLS
from agentcms_client.client import MAX_EDIT_ATTEMPTS, UNFINISHED, UNFINISHED_JOBS, Changes, edited_state, has_fields
from agentcms_client.experiments import AsyncExperiments
from agentcms_client.json_types import JSONObject, JSONValue
from agentcms_client.requests import DEFAULT_TIMEOUT, Call
from agentcms_client.responses import Stale
from agentcms_client.retries import Attempts, WaitPauses
from agentcms_client.schemas import Agent, Answer, Approval, Comparison, Job, Run, Version
from agentcms_client.streaming import Callback, Callbacks, Chunk, StreamedRun, read_run_async, read_thread_async


class AsyncClient:
    """The asynchronous client, with the methods of `Client`.

    async with AsyncClient("http://127.0.0.1:8000", key) as cms:
        await cms.update_agent("concierge", instructions="Greet guests by name.")
    """

    def __init__(self, base_url: str, key: str, **options: JSONValue) -> None:
        options = {"timeout": DEFAULT_TIMEOUT, **options}
        self.http = httpx.AsyncClient(base_url=base_url, headers={"Authorization": f"Bearer {key}"}, **options)
        self.experiments = AsyncExperiments(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.http.aclose()

    async def send(self, call: Call) -> Any:
        """Send a call and return the body of the response. Retry transient failures. Raise ApiError."""
        return (await self.send_with_etag(call))[0]

    async def send_with_etag(self, call: Call) -> tuple[Any, str]:
        """Send a call like `send`. Return the body and the ETag of the response."""
        attempts = Attempts(call)
        while True:
            try:
                response = await self.http.request(**call.request_kwargs())
            except httpx.TransportError as error:
                if (seconds := attempts.pause_after_error(error)) is None:
                    raise
            else:
                if (seconds := attempts.pause_after_response(response)) is None:
                    return attempts.result(response), response.headers.get("ETag", "")
            await asyncio.sleep(seconds)

    async def agents(self, **query: JSONValue) -> AsyncIterator[Agent]:
        """Yield all agents that match the filters, page by page."""
        # By cursor: with page numbers, agents that are created or deleted meanwhile would move others to another page.
        cursor: str | None = ""
        while cursor is not None:
            page = await self.send(CALLS.list_agents(**{"perPage": 100, **query, "cursor": cursor}))
            for agent in page["agents"]:
                yield agent
            cursor = page["nextCursor"]

    async def versions(self, agent_id: str, per_page: int = 100) -> AsyncIterator[Version]:
        """Yield all versions of an agent, newest first, page by page. Versions that are new meanwhile are left out."""
        number, has_more, last = 0, True, math.inf
        while has_more:
            page = await self.send(CALLS.list_versions(agent_id, page=number, perPage=per_page))
            for version in page["versions"]:
                if version["versionNumber"] < last:
                    last = version["versionNumber"]
                    yield version
            number, has_more = number + 1, page["hasMore"]

    async def edit_agent(self, agent_id: str, changes: Changes, **options: JSONValue) -> Agent:
        """Read an agent, change it and save it. Start again if somebody else saved in between.

        `changes` takes the agent and returns the fields to save. Raise Stale after ten attempts.
        """
        state = edited_state(options)
        for attempt in range(MAX_EDIT_ATTEMPTS):
            agent: Agent
            agent, etag = await self.send_with_etag(CALLS.get_agent(agent_id, **state))
            fields = {**changes(agent), **options}
            try:
                return await self.update_agent(agent_id, etag, **fields)
            except Stale as stale:
                # The server may have saved this edit, and only its response was lost. Then the agent has the values.
                if stale.may_be_own and has_fields(agent := await self.get_agent(agent_id, **state), fields):
                    return agent
                if attempt + 1 == MAX_EDIT_ATTEMPTS:
                    raise
        raise AssertionError("The last attempt returns or raises.")

    async def get_agent(self, agent_id: str, **query: JSONValue) -> Agent:
        agent: Agent = await self.send(CALLS.get_agent(agent_id, **query))
        return agent

    async def create_agent(self, agent_id: str, **fields: JSONValue) -> Agent:
        agent: Agent = await self.send(CALLS.create_agent(agent_id, **fields))
        return agent

    async def update_agent(self, agent_id: str, etag: str = "", **fields: JSONValue) -> Agent:
        """Save the given fields. With an ETag, raise Stale if the agent changed since it was read."""
        agent: Agent = await self.send(CALLS.update_agent(agent_id, etag, **fields))
        return agent

    async def compare(self, agent_id: str, before: str = "live", after: str = "head") -> Comparison:
        """Compare two versions, by id, `live` or `head`."""
        comparison: Comparison = await self.send(CALLS.compare(agent_id, before, after))
        return comparison

    async def generate(self, agent_id: str, messages: JSONValue, **body: JSONValue) -> Answer:
        """Run an agent and return its answer. `variables` are the values of its variables."""
        answer: Answer = await self.send(CALLS.generate(agent_id, messages, **body))
        return answer

    async def stream(
        self,
        agent_id: str,
        messages: JSONValue,
        *,
        on_chunk: Callback | None = None,
        on_step_finish: Callback | None = None,
        on_finish: Callback | None = None,
        on_error: Callback | None = None,
        on_suspended: Callback | None = None,
        **body: JSONValue,
    ) -> StreamedRun:
        """Run an agent, read its events to the end, and call the functions with them, in order and once.

        A lost connection is opened again after the last event. An exception of a function is raised to the caller;
        the run goes on, and `observe` continues to read it.
        """
        callbacks = Callbacks(on_chunk, on_step_finish, on_finish, on_error, on_suspended)
        return await read_run_async(self.http, CALLS.stream(agent_id, messages, **body), StreamedRun(), callbacks)

    async def observe(
        self,
        run_id: str,
        after: int = 0,
        *,
        on_chunk: Callback | None = None,
        on_step_finish: Callback | None = None,
        on_finish: Callback | None = None,
        on_error: Callback | None = None,
        on_suspended: Callback | None = None,
    ) -> StreamedRun:
        """Read the events of a run after the one with this number, like `stream`, from any process."""
        callbacks = Callbacks(on_chunk, on_step_finish, on_finish, on_error, on_suspended)
        return await read_run_async(self.http, CALLS.follow_run(run_id, after), StreamedRun(run_id, after), callbacks)

    def follow_thread(self, agent_id: str, thread_id: str, **body: JSONValue) -> AsyncGenerator[Chunk, None]:
        """Yield the events of the active run of a thread and of all later ones, and the signals between them.

        Close it, for example with `contextlib.aclosing`, if you leave the loop before its end.
        """
        return read_thread_async(self.http, CALLS.follow_thread(agent_id, thread_id, **body))

    async def approvals(self, **query: JSONValue) -> AsyncIterator[Approval]:
        """Yield the tool calls that wait for people. `state="decided"` yields those that do not.

        All pages are read first: a call that is decided meanwhile leaves the list, and later ones move up.
        """
        approval_by_id: dict[str, Approval] = {}
        number, has_more = 0, True
        while has_more:
            page = await self.send(CALLS.list_approvals(**{"perPage": 100, **query, "page": number}))
            approval_by_id |= {approval["id"]: approval for approval in page["approvals"]}
            number, has_more = number + 1, page["hasMore"]
        for approval in approval_by_id.values():
            yield approval

    async def approve(
        self, approval_id: str, arguments: JSONObject | None = None, *, reason: str = "", mark: str = ""
    ) -> Approval:
        """Approve a tool call, also with other arguments. With a mark, raise ApiError if the call has changed."""
        call = CALLS.decide(approval_id, "approve", arguments=arguments, reason=reason, mark=mark)
        approval: Approval = await self.send(call)
        return approval

    async def decline(self, approval_id: str, reason: str = "", *, mark: str = "") -> Approval:
        """Decline a tool call. The model reads the reason."""
        approval: Approval = await self.send(CALLS.decide(approval_id, "decline", reason=reason, mark=mark))
        return approval

    async def resume(self, approval_id: str, data: JSONValue, *, mark: str = "") -> Approval:
        """Send the data for which a tool waits that has suspended itself."""
        call = CALLS.decide(approval_id, "resume", mark=mark)
        # Added here, because `decide` leaves out None, and a tool may wait for null.
        call.body["resumeData"] = data
        approval: Approval = await self.send(call)
        return approval

    async def wait(self, run_id: str, seconds: float | None = None) -> Run:
        """Wait until a run is finished, however many decisions that takes, and return it.

        Raise TimeoutError after `timeout` seconds. The run goes on.
        """
        pauses = WaitPauses(seconds)
        while (run := await self.send(CALLS.get_run(run_id)))["status"] in UNFINISHED:
            await asyncio.sleep(pauses.next())
        finished: Run = run
        return finished

    async def job(self, job_id: str) -> Job:
        job: Job = await self.send(CALLS.get_job(job_id))
        return job

    async def wait_for_job(self, job_id: str, seconds: float | None = None) -> Job:
        """Wait until a job is finished, and return it. Raise TimeoutError after `timeout` seconds. The job goes on."""
        pauses = WaitPauses(seconds, "job")
        while (job := await self.job(job_id))["state"] in UNFINISHED_JOBS:
            await asyncio.sleep(pauses.next())
        return job

    async def job_file(self, job_id: str) -> bytes:
        """Return the file that a finished job has written."""
        content: bytes = await self.send(CALLS.get_job_file(job_id))
        return content
