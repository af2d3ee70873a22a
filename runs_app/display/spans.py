"""Time spans of a run, positioned as bars for a template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from runs_app.display.formats import format_duration
from runs_app.display.transcript import ToolCallPart
from runs_app.models import AgentRun, RunEvent

WIDTH = 1000  # units of the complete time line
MIN_WIDTH = 4  # units of a visible bar
MIN_WAIT = timedelta(milliseconds=20)  # shorter waits are not displayed


@dataclass
class Span:
    """A time span with a label. `kind` is wait, model, tool or agent."""

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
    """Return the spans of a run in chronological order, with their positions."""
    end = run.finished_at or timezone.now()
    model = model_spans(events, end)
    spans = [*waiting_spans(run, model), *model]
    for call in calls:
        if call.started_at:
            kind = "agent" if call.noun == "sub-agent" else "tool"
            spans.append(Span(kind, call.title, call.started_at, call.ended_at or end))
    spans.sort(key=lambda span: span.begin)
    position_spans(spans, run.created_at, end)
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
        elif current and kind in {"tool-call", "step-finish", "error", "abort", "finish"}:
            current.end, current = event.created_at, None
    return spans


def position_spans(spans: Sequence[Span], begin: datetime, end: datetime) -> None:
    """Set the position and width of each bar on the time line."""
    total = max(end - begin, timedelta(milliseconds=1))
    for span in spans:
        start, stop = (min(max((at - begin) / total, 0), 1) * WIDTH for at in (span.begin, span.end))
        span.width = round(max(stop - start, MIN_WIDTH), 1)
        span.x = round(min(start, WIDTH - span.width), 1)
