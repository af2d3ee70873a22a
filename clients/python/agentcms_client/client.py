"""The synchronous client. The asynchronous one has the same methods."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import httpx

from agentcms_client.calls import CALLS
from agentcms_client.experiments import Experiments
from agentcms_client.json_types import JSONObject, JSONValue
from agentcms_client.requests import DEFAULT_TIMEOUT, Call
from agentcms_client.responses import Stale
from agentcms_client.retries import Attempts, WaitPauses
from agentcms_client.schemas import Agent, Answer, Approval, Comparison, Job, Run, Version
from agentcms_client.streaming import Callback, Callbacks, Chunk, StreamedRun, read_run, read_thread

Changes = Callable[[Agent], JSONObject]

MAX_EDIT_ATTEMPTS = 10
UNFINISHED = ("queued", "running", "suspended")  # statuses of runs
UNFINISHED_JOBS = ("queued", "running")  # states of jobs


def edited_state(options: JSONObject) -> JSONObject:
    """Return the query for the state with which an edit begins: that of the draft if it saves one."""
    return {"status": "draft"} if options.get("autoPublish") is False else {}


def has_fields(agent: Agent, fields: JSONObject) -> bool:
    """Return True if an agent has these values. Members of a change that an agent has not do not count."""
    return all(agent.get(name, value) == value for name, value in fields.items())


class Client:
    """The synchronous client.

    with Client("http://127.0.0.1:8000", key) as cms:
        cms.update_agent("concierge", instructions="Greet guests by name.")

    `options` are passed to httpx: `timeout`, `verify` and others.
    """

    def __init__(self, base_url: str, key: str, **options: JSONValue) -> None:
        options = {"timeout": DEFAULT_TIMEOUT, **options}
        self.http = httpx.Client(base_url=base_url, headers={"Authorization": f"Bearer {key}"}, **options)
        self.experiments = Experiments(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    def send(self, call: Call) -> Any:
        """Send a call and return the body of the response. Retry transient failures. Raise ApiError."""
        return self.send_with_etag(call)[0]

    def send_with_etag(self, call: Call) -> tuple[Any, str]:
        """Send a call like `send`. Return the body and the ETag of the response."""
        attempts = Attempts(call)
        while True:
            try:
                response = self.http.request(**call.request_kwargs())
            except httpx.TransportError as error:
                if (seconds := attempts.pause_after_error(error)) is None:
                    raise
            else:
                if (seconds := attempts.pause_after_response(response)) is None:
                    return attempts.result(response), response.headers.get("ETag", "")
            time.sleep(seconds)

    def agents(self, **query: JSONValue) -> Iterator[Agent]:
        """Yield all agents that match the filters, page by page."""
        # By cursor: with page numbers, agents that are created or deleted meanwhile would move others to another page.
        cursor: str | None = ""
        while cursor is not None:
            page = self.send(CALLS.list_agents(**{"perPage": 100, **query, "cursor": cursor}))
            yield from page["agents"]
            cursor = page["nextCursor"]

    def versions(self, agent_id: str, per_page: int = 100) -> Iterator[Version]:
        """Yield all versions of an agent, newest first, page by page. Versions that are new meanwhile are left out."""
        number, has_more, last = 0, True, math.inf
        while has_more:
            page = self.send(CALLS.list_versions(agent_id, page=number, perPage=per_page))
            for version in page["versions"]:
                if version["versionNumber"] < last:
                    last = version["versionNumber"]
                    yield version
            number, has_more = number + 1, page["hasMore"]

    def edit_agent(self, agent_id: str, changes: Changes, **options: JSONValue) -> Agent:
        """Read an agent, change it and save it. Start again if somebody else saved in between.

        `changes` takes the agent and returns the fields to save. Raise Stale after ten attempts.
        """
        state = edited_state(options)
        for attempt in range(MAX_EDIT_ATTEMPTS):
            agent: Agent
            agent, etag = self.send_with_etag(CALLS.get_agent(agent_id, **state))
            fields = {**changes(agent), **options}
            try:
                return self.update_agent(agent_id, etag, **fields)
            except Stale as stale:
                # The server may have saved this edit, and only its response was lost. Then the agent has the values.
                if stale.may_be_own and has_fields(agent := self.get_agent(agent_id, **state), fields):
                    return agent
                if attempt + 1 == MAX_EDIT_ATTEMPTS:
                    raise
        raise AssertionError("The last attempt returns or raises.")

    def get_agent(self, agent_id: str, **query: JSONValue) -> Agent:
        agent: Agent = self.send(CALLS.get_agent(agent_id, **query))
        return agent

    def create_agent(self, agent_id: str, **fields: JSONValue) -> Agent:
        agent: Agent = self.send(CALLS.create_agent(agent_id, **fields))
        return agent

    def update_agent(self, agent_id: str, etag: str = "", **fields: JSONValue) -> Agent:
        """Save the given fields. With an ETag, raise Stale if the agent changed since it was read."""
        agent: Agent = self.send(CALLS.update_agent(agent_id, etag, **fields))
        return agent

    def compare(self, agent_id: str, before: str = "live", after: str = "head") -> Comparison:
        """Compare two versions, by id, `live` or `head`."""
        comparison: Comparison = self.send(CALLS.compare(agent_id, before, after))
        return comparison

    def generate(self, agent_id: str, messages: JSONValue, **body: JSONValue) -> Answer:
        """Run an agent and return its answer. `variables` are the values of its variables."""
        answer: Answer = self.send(CALLS.generate(agent_id, messages, **body))
        return answer

    def stream(
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
        return read_run(self.http, CALLS.stream(agent_id, messages, **body), StreamedRun(), callbacks)

    def observe(
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
        return read_run(self.http, CALLS.follow_run(run_id, after), StreamedRun(run_id, after), callbacks)

    def follow_thread(self, agent_id: str, thread_id: str, **body: JSONValue) -> Iterator[Chunk]:
        """Yield the events of the active run of a thread and of all later ones, and the signals between them."""
        return read_thread(self.http, CALLS.follow_thread(agent_id, thread_id, **body))

    def approvals(self, **query: JSONValue) -> Iterator[Approval]:
        """Yield the tool calls that wait for people. `state="decided"` yields those that do not.

        All pages are read first: a call that is decided meanwhile leaves the list, and later ones move up.
        """
        approval_by_id: dict[str, Approval] = {}
        number, has_more = 0, True
        while has_more:
            page = self.send(CALLS.list_approvals(**{"perPage": 100, **query, "page": number}))
            approval_by_id |= {approval["id"]: approval for approval in page["approvals"]}
            number, has_more = number + 1, page["hasMore"]
        yield from approval_by_id.values()

    def approve(
        self, approval_id: str, arguments: JSONObject | None = None, *, reason: str = "", mark: str = ""
    ) -> Approval:
        """Approve a tool call, also with other arguments. With a mark, raise ApiError if the call has changed."""
        call = CALLS.decide(approval_id, "approve", arguments=arguments, reason=reason, mark=mark)
        approval: Approval = self.send(call)
        return approval

    def decline(self, approval_id: str, reason: str = "", *, mark: str = "") -> Approval:
        """Decline a tool call. The model reads the reason."""
        approval: Approval = self.send(CALLS.decide(approval_id, "decline", reason=reason, mark=mark))
        return approval

    def resume(self, approval_id: str, data: JSONValue, *, mark: str = "") -> Approval:
        """Send the data for which a tool waits that has suspended itself."""
        call = CALLS.decide(approval_id, "resume", mark=mark)
        # Added here, because `decide` leaves out None, and a tool may wait for null.
        call.body["resumeData"] = data
        approval: Approval = self.send(call)
        return approval

    def wait(self, run_id: str, seconds: float | None = None) -> Run:
        """Wait until a run is finished, however many decisions that takes, and return it.

        Raise TimeoutError after `timeout` seconds. The run goes on.
        """
        pauses = WaitPauses(seconds)
        while (run := self.send(CALLS.get_run(run_id)))["status"] in UNFINISHED:
            time.sleep(pauses.next())
        finished: Run = run
        return finished

    def job(self, job_id: str) -> Job:
        job: Job = self.send(CALLS.get_job(job_id))
        return job

    def wait_for_job(self, job_id: str, seconds: float | None = None) -> Job:
        """Wait until a job is finished, and return it. Raise TimeoutError after `timeout` seconds. The job goes on."""
        pauses = WaitPauses(seconds, "job")
        while (job := self.job(job_id))["state"] in UNFINISHED_JOBS:
            time.sleep(pauses.next())
        return job

    def job_file(self, job_id: str) -> bytes:
        """Return the file that a finished job has written."""
        content: bytes = self.send(CALLS.get_job_file(job_id))
        return content
