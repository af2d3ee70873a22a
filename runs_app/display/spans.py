"""Time spans of a run, positioned as bars for a template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from runs_app.display.formats import format_duration
from runs_app.display.transcript import ToolCallPart
from runs_app.models import AgentRun, PendingCall, RunClaim, RunEvent

WIDTH = 1000  # units of the complete time line
MIN_WIDTH = 4  # units of a visible bar
MIN_WAIT = timedelta(milliseconds=20)  # shorter waits are not displayed
MAX_WAIT_SHARE = 1 / 3  # of the time line, for waits that last longer than the work

TimeRange = tuple[datetime, datetime]


@dataclass
class Span:
    """A time span with a label. `kind` is wait, model, tool, agent, person or process.

    A span of a person is the wait for a decision. A span of a process is the time at which it took over the run.
    """

    kind: str
    label: str
    begin: datetime
    end: datetime
    note: str = ""
    approval_id: UUID | None = None  # of the decision, whose page has the arguments with which the tool ran
    is_shortened: bool = False  # its bar is shorter than its time
    x: float = 0
    width: float = 0

    @property
    def duration_text(self) -> str:
        return "" if self.kind == "process" else format_duration(self.end - self.begin)


def build_spans(
    run: AgentRun,
    events: Iterable[RunEvent],
    calls: Iterable[ToolCallPart],
    waits: Iterable[PendingCall] = (),
    claims: Iterable[RunClaim] = (),
) -> list[Span]:
    """Return the spans of a run in chronological order, with their positions."""
    end, waits = run.finished_at or timezone.now(), [*waits]
    model = model_spans(events, end)
    people = person_spans(waits, end)
    spans = [*waiting_spans(run, model), *model, *people, *process_spans(claims), *call_spans(calls, end)]
    spans.sort(key=lambda span: span.begin)
    position_spans(spans, TimeLine(run.created_at, end, [(span.begin, span.end) for span in people]))
    return spans


def waiting_spans(run: AgentRun, model: Sequence[Span]) -> list[Span]:
    """Return the time before a process started the run, and before its first model request."""
    started_at = run.started_at
    if started_at is None:
        return []
    spans = [Span("wait", "Waiting", run.created_at, started_at)]
    if model:
        spans.append(Span("wait", "Preparing", started_at, model[0].begin))
    return [span for span in spans if span.end - span.begin > MIN_WAIT]


def model_spans(events: Iterable[RunEvent], end: datetime) -> list[Span]:
    """Return a span for each model request, from its start to the first tool call or the end of its text."""
    spans: list[Span] = []
    current: Span | None = None
    for event in events:
        kind = event.data.get("type")
        if kind == "step-start":
            current = Span("model", f"Model, step {len(spans) + 1}", event.created_at, end)
            spans.append(current)
        elif current and kind in {"tool-call", "step-finish", "error", "abort", "finish", "suspended"}:
            current.end, current = event.created_at, None
    return spans


def person_spans(waits: Iterable[PendingCall], end: datetime) -> list[Span]:
    """Return a span for each wait for a decision, with who made it."""
    return [
        Span(
            "person",
            ToolCallPart(call.call_id, call.tool).title,
            call.created_at,
            call.decided_at or end,
            decision_note(call),
            call.pk,
        )
        for call in waits
    ]


def decision_note(call: PendingCall) -> str:
    """Return how a call was decided: `Approved by ann with edited arguments`."""
    decision = "Waits for a decision" if call.is_open else call.get_state_display()
    decider = f" by {call.decided_by_name}" if call.decided_by_name else ""
    return f"{decision}{decider}{'' if call.edited_arguments is None else ' with edited arguments'}"


def decision_text(call: PendingCall) -> str:
    """Return how a call was decided, to follow its name: `approved by ann`."""
    note = decision_note(call)
    return f"{note[:1].lower()}{note[1:]}"


def process_spans(claims: Iterable[RunClaim]) -> Iterator[Span]:
    """Yield the times at which another process took over. The first claim after a decision is none."""
    segments = [0]
    for claim in claims:
        if claim.segment == segments[-1]:
            yield Span("process", "Process replaced", claim.claimed_at, claim.claimed_at, f"by {claim.process_name}")
        segments.append(claim.segment)


def call_spans(calls: Iterable[ToolCallPart], end: datetime) -> Iterator[Span]:
    """Yield the spans of tool calls."""
    for call in calls:
        if call.started_at is None or call.state in {"waiting", "decided", "not-run"}:
            continue
        kind = "agent" if call.noun == "sub-agent" else "tool"
        yield Span(kind, call.title, call.started_at, call.ended_at or end)


class TimeLine:
    """The positions of times. Waits for people are shortened if they are longer than the rest of the run."""

    def __init__(self, begin: datetime, end: datetime, waits: Iterable[TimeRange]) -> None:
        self.begin, self.end = begin, end
        self.waits = [*merge_ranges(waits)]
        total, waited = end - begin, sum((stop - start for start, stop in self.waits), timedelta())
        self.worked = max(total - waited, timedelta(milliseconds=1))
        longest = self.worked * MAX_WAIT_SHARE / (1 - MAX_WAIT_SHARE)
        self.scale = min(longest / waited, 1.0) if waited else 1.0
        self.length = self.worked + waited * self.scale

    def position(self, at: datetime) -> float:
        """Return the position of a time between 0 and 1."""
        at = min(max(at, self.begin), self.end)
        waited = sum((min(at, stop) - start for start, stop in self.waits if start < at), timedelta())
        return (at - self.begin - waited * (1 - self.scale)) / self.length


def merge_ranges(ranges: Iterable[TimeRange]) -> Iterator[TimeRange]:
    """Yield the ranges in order, those that overlap as one."""
    merged: list[TimeRange] = []
    for start, stop in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    yield from merged


def position_spans(spans: Iterable[Span], line: TimeLine) -> None:
    """Set the position and width of each bar on the time line."""
    for span in spans:
        start, stop = (line.position(at) * WIDTH for at in (span.begin, span.end))
        span.width = round(max(stop - start, MIN_WIDTH), 1)
        span.x = round(min(start, WIDTH - span.width), 1)
        span.is_shortened = span.kind == "person" and line.scale < 1
