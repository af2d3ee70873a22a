"""The runs of a process in memory: the chunks and steps that the writer has not written yet."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TypedDict
from uuid import UUID

from django.db.models.expressions import Combinable

from agentcms.wire.json_types import JSONObject
from runs_app.events.stream_chunks import StreamChunk
from runs_app.models import PendingCall, RunStep
from runs_app.scoring import AnswerToScore


class RunEnd(TypedDict, total=False):
    """The columns that the end of a run writes to its row: of an answer, a suspension or a hand-over."""

    status: str
    finish_reason: str
    error: str
    output: str
    usage: JSONObject
    cost: Decimal | None
    warnings: list[dict[str, str]]
    remembered: JSONObject | None
    is_demo: bool
    first_text_at: Combinable
    # Of a suspension: the calls that wait, and those of runs below that its events report.
    calls: Sequence[PendingCall]
    reported: Collection[UUID]
    conversation: JSONObject
    expires_at: datetime | None
    worked_ms: int
    attempts: Combinable  # of a hand-over
    scoring: AnswerToScore  # of an answer


def uncancellable_future() -> Future[bool]:
    """Return a future that only the thread of the writer completes.

    An event loop that cancels a task would else cancel the future for which the task waits. The thread could then not
    complete it, after a commit, and would write all events of that transaction again.
    """
    future: Future[bool] = Future()
    future.set_running_or_notify_cancel()
    return future


@dataclass
class PendingRun:
    """A run that this process executes, with the chunks and steps that are not yet written."""

    number: int = 0  # of the last written event
    fence: int = 0  # the number of the claim; 0 unless the run is durable
    leased_until: float = math.inf  # monotonic time at which the lease ends by the clock of this process
    attempts: int = 0  # of the row
    parent_id: UUID | None = None
    ends_only: bool = False  # whether the request that started the run waits for its end only
    steps: dict[str, RunStep] = field(default_factory=dict)  # the latest state of each step by key
    step_futures: list[Future[bool]] = field(default_factory=list)  # of those who wait for these steps
    chunks: list[tuple[StreamChunk, datetime]] = field(default_factory=list)
    in_flight: int = 0  # number of leading chunks that the thread is writing; these must not change
    end: RunEnd | None = None  # the columns of the end, once the run has ended or is handed over
    written: Future[bool] = field(default_factory=uncancellable_future)
    first_text_at: datetime | None = None
    text_id: str | None = None  # of the text whose pieces are being added


@dataclass(frozen=True)
class WriteSnapshot:
    """The chunks, the steps and the end of a run that one transaction writes."""

    number: int
    chunks: list[tuple[StreamChunk, datetime]]
    end: RunEnd | None
    fence: int = 0
    steps: tuple[RunStep, ...] = ()
    step_futures: tuple[Future[bool], ...] = ()
    resets_attempts: bool = False
    parent_id: UUID | None = None


def take_snapshot(run: PendingRun) -> WriteSnapshot:
    steps = tuple(run.steps.values())
    resets_attempts = run.attempts > 0 and any(step.state == RunStep.State.DONE for step in steps)
    return WriteSnapshot(
        run.number,
        list(run.chunks),
        run.end,
        run.fence,
        steps,
        tuple(run.step_futures),
        resets_attempts,
        run.parent_id,
    )


def remove_written_steps(run: PendingRun, snapshot: WriteSnapshot) -> None:
    """Forget the steps that were written, unless they have a newer state, and complete the futures of this write."""
    for step in snapshot.steps:
        if run.steps.get(step.key) is step:
            del run.steps[step.key]
    del run.step_futures[: len(snapshot.step_futures)]
    if snapshot.resets_attempts:
        run.attempts = 0
    for future in snapshot.step_futures:
        future.set_result(True)
