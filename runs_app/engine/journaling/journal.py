"""The journal of a durable run: its steps with their results. `capability` connects it to pydantic-ai.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built or runs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.utils import timezone
from pydantic_ai.models import StreamedResponse

from agentcms.db.outages import OUTAGE_ERRORS
from runs_app.engine.context import ToolAttempt
from runs_app.engine.journaling.step_input import StepInput
from runs_app.engine.usage_limits import RunLimits
from runs_app.events.durable_recorder import DurableRecorder
from runs_app.events.stream_chunks import to_storable_json
from runs_app.events.writer import EventWriter
from runs_app.exceptions import JournalError, RunInterrupted, RunLeaseLost
from runs_app.models import PendingCall, RunStep
from runs_app.models.pending_call import step_call_key

StepBody = Callable[[], Awaitable[object]]

UNKNOWN_OUTCOME_MESSAGE = (
    "The server stopped while this tool worked, and the tool may not be called twice. "
    "It is not known whether it has done its work. Check that before you continue, or tell the user."
)

current_journal: ContextVar[Journal | None] = ContextVar("current_journal", default=None)


@contextmanager
def interrupting_outages(journal: Journal | None) -> Iterator[None]:
    """Stop a durable run where the database is away, so that it continues later. Its model would take it for an error.

    The child runs of parallel calls are then queued again, too. A background task has no journal.
    """
    try:
        yield
    except OUTAGE_ERRORS as error:
        if journal is None:
            raise
        journal.is_stopping = True
        raise RunInterrupted from error


@dataclass
class Journal:
    """The steps of one segment of a durable run, while this process executes it."""

    run_id: UUID
    segment: int
    writer: EventWriter
    recorder: DurableRecorder
    steps: dict[str, RunStep] = field(default_factory=dict)  # of earlier processes, by key
    uses: Counter[str] = field(default_factory=Counter)  # of each key by this process
    call_ids: dict[str, str] = field(default_factory=dict)  # of tool calls, unique in the segment, by their IDs
    limits: RunLimits | None = None
    stream: StreamedResponse | None = None  # of the current answer
    active_tools: int = 0
    is_stopping: bool = False  # the process stops, so no further step begins
    is_lost: bool = False  # another process may have claimed the run
    answer_written: Future[bool] | None = None  # of the last answer

    async def execute_step(self, step_input: StepInput, body: StepBody) -> object:
        """Return the result of a step: that of an earlier process, or else what `body` returns.

        Raise JournalError if the step differs from that of the earlier process, RunInterrupted while the process
        stops, and RunLeaseLost if another process may have claimed the run.
        """
        step_input = self.number_step(step_input)
        earlier = self.steps.get(step_input.key)
        if earlier is not None and earlier.mark != step_input.mark:
            raise JournalError(f"The step {describe_step(earlier)} differs from the one that was recorded.")
        if earlier is not None and earlier.state == RunStep.State.DONE:
            return earlier.result
        return await self.execute_new(step_input, body, earlier)

    def number_step(self, step_input: StepInput) -> StepInput:
        """Return the input with a key that is unique in the run.

        Requests to the model have equal keys. Some servers repeat the IDs of tool calls.
        """
        self.uses[step_input.key] += 1
        number = self.uses[step_input.key]
        suffix = f"/{number}" if number > 1 or step_input.is_numbered else ""
        return replace(step_input, key=f"{self.segment}/{step_input.key}{suffix}")

    def check_may_begin(self) -> None:
        if self.is_stopping:
            raise RunInterrupted
        self.check_lease()

    def check_lease(self) -> None:
        if not self.writer.has_lease(self.run_id):
            self.is_lost = True
            raise RunLeaseLost

    async def execute_new(self, step_input: StepInput, body: StepBody, earlier: RunStep | None) -> object:
        await self.wait_for_answer()
        self.check_may_begin()  # after the wait: a commit may take longer than the lease
        attempts = earlier.attempts + 1 if earlier is not None else 1
        started = RunStep(
            run_id=self.run_id,
            key=step_input.key,
            kind=step_input.kind,
            name=step_input.name,
            state=RunStep.State.STARTED,
            mark=step_input.mark,
            attempts=attempts,
            started_at=timezone.now(),
        )
        if earlier is not None and step_input.is_at_most_once:
            return await self.finish(started, {"kind": "tool_failed", "message": UNKNOWN_OUTCOME_MESSAGE}, step_input)
        recorded = self.writer.write_step(self.run_id, started, at_once=step_input.is_at_most_once)
        if step_input.is_at_most_once:
            await self.wait_until_written(asyncio.wrap_future(recorded))
            self.check_lease()
        result = to_storable_json(await self.run_body(step_input, body, attempts))
        return await self.finish(started, result, step_input)

    async def run_body(self, step_input: StepInput, body: StepBody, attempts: int) -> object:
        if step_input.kind == RunStep.Kind.MODEL:
            self.recorder.begin_answer()
        if step_input.deps is None:
            return await body()
        # Without the segment: a call that waited for a person has the same idempotency key in the next one.
        unique_id = self.call_ids[step_input.call_id] = step_input.key.split("/", 2)[2]
        step_input.deps.tool_attempts[step_input.call_id] = ToolAttempt(attempts, f"{self.run_id}:{unique_id}")
        self.active_tools += 1
        try:
            return await body()
        finally:
            self.active_tools -= 1

    async def finish(self, started: RunStep, result: object, step_input: StepInput) -> object:
        """Write the result of a step together with the events that report it."""
        done = copy(started)  # the thread of the writer may be reading the other one
        done.state, done.result, done.finished_at = RunStep.State.DONE, result, timezone.now()
        # The last answer of a run is written together with the end of the run.
        is_answer = step_input.kind == RunStep.Kind.MODEL
        with self.writer.one_commit():
            if step_input.kind == RunStep.Kind.TOOL:
                self.recorder.record_result(step_input.call_id, step_input.name, result)
            written = self.writer.write_step(self.run_id, done, at_once=not is_answer)
        if is_answer:
            self.answer_written = written
        else:
            await self.wait_until_written(asyncio.wrap_future(written))
        return result

    async def wait_for_answer(self) -> None:
        """Wait until the last answer is written. A step that depends on it must not begin before."""
        if self.answer_written is not None and not self.answer_written.done():
            self.writer.write_soon()
        if self.answer_written is not None:
            await self.wait_until_written(asyncio.wrap_future(self.answer_written))

    async def wait_until_written(self, written: Awaitable[bool]) -> None:
        if not await written:
            self.is_lost = True
            raise RunLeaseLost

    def uses_without(self, calls: Iterable[PendingCall]) -> dict[str, int]:
        """Return how often each ID of a tool call was used, without the last use by these calls.

        The next segment executes them again. They then have the same idempotency keys.
        """
        uses = Counter({key: count for key, count in self.uses.items() if key.startswith("t/")})
        uses.subtract(key for call in calls if uses[key := f"t/{step_call_key(call.call_id)}"] > 0)
        return dict(uses)

    def unfinished_steps(self) -> list[RunStep]:
        """Return the steps that earlier processes have begun and not finished."""
        return [step for step in self.steps.values() if step.state == RunStep.State.STARTED]


def describe_step(step: RunStep) -> str:
    """Return a description of a step for the reader of an error."""
    return f"'{step.name}' ({step.key})" if step.name else step.key


def load_steps(run_id: UUID, segment: int) -> dict[str, RunStep]:
    """Return the steps of a segment by key."""
    return {step.key: step for step in RunStep.objects.filter(run=run_id, key__startswith=f"{segment}/")}
