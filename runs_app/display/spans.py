"""Where the time of a run went, as bars that a template draws: 1 unit is a thousandth of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from runs_app.display.formats import format_duration
from runs_app.display.transcript import ToolCallPart
from runs_app.models import AgentRun, RunEvent

WIDTH = 1000
MIN_WIDTH = 4  # units below which a bar cannot be seen
MIN_WAIT = timedelta(milliseconds=20)  # a wait shorter than this is none


@dataclass
class Span:
    """A stretch of time with a name; `kind` is wait, model, tool or agent."""

    kind: str
    label: str
    begin: datetime
    end: datetime
    x: float = 0
    width: float = 0

    @property
    def duration_text(self) -> str:
        return format_duration(self.end - self.begin)


def build_spans(run: AgentRun, events: Iterable[RunEvent], calls: Iterable[ToolCallPart]) -> list[Span]:
    """What the run waited for, in order of when it began, with the place of each bar."""
    end = run.finished_at or timezone.now()
    asked = model_spans(events, end)
    found = [*waiting_spans(run, asked), *asked]
    for call in calls:
        if call.began_at:
            kind = "agent" if call.noun == "sub-agent" else "tool"
            found.append(Span(kind, call.title, call.began_at, call.ended_at or end))
    found.sort(key=lambda span: span.begin)
    position_spans(found, run.created_at, end)
    return found


def waiting_spans(run: AgentRun, asked: Sequence[Span]) -> list[Span]:
    """The time before a process took the run, and until that asked the model."""
    begun = run.started_at
    if begun is None:
        return []
    found = [Span("wait", "Waiting", run.created_at, begun)]
    if asked:
        found.append(Span("wait", "Preparing", begun, asked[0].begin))
    return [span for span in found if span.end - span.begin > MIN_WAIT]


def model_spans(events: Iterable[RunEvent], end: datetime) -> list[Span]:
    """One span for each request to the model: until it had said everything, or called the first tool."""
    found: list[Span] = []
    current: Span | None = None
    for event in events:
        kind = event.data.get("type")
        if kind == "step-start":
            current = Span("model", f"Model, step {len(found) + 1}", event.created_at, end)
            found.append(current)
        elif current and kind in {"tool-call", "step-finish", "error", "abort", "finish"}:
            current.end, current = event.created_at, None
    return found


def position_spans(found: Sequence[Span], begin: datetime, end: datetime) -> None:
    """Give each bar its place on a line from the beginning to the end."""
    whole: Any = max(end - begin, timedelta(milliseconds=1))
    for span in found:
        start, stop = (min(max((at - begin) / whole, 0), 1) * WIDTH for at in (span.begin, span.end))
        span.width = round(max(stop - start, MIN_WIDTH), 1)
        span.x = round(min(start, WIDTH - span.width), 1)
