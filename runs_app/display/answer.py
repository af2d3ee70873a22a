"""A run as the pages show it: what was asked, what came of it, and what it took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from runs_app.display.formats import format_cost, format_duration, model_name, total_tokens
from runs_app.display.spans import Span, build_spans
from runs_app.display.transcript import AnswerPart, Transcript
from runs_app.models import AgentRun, RunEvent


@dataclass
class RunView:
    """A run with its events."""

    run: AgentRun
    events: Sequence[RunEvent] = ()
    children: Sequence[AgentRun] = field(default_factory=list)

    @cached_property
    def transcript(self) -> Transcript:
        read = Transcript(self.events)
        for child in self.children:
            if call := read.calls.get(child.parent_call_id):
                call.child = child
        if self.run.is_finished:
            for call in read.calls.values():
                call.state = "unfinished" if call.state == "running" else call.state
        return read

    @property
    def parts(self) -> list[AnswerPart]:
        return self.transcript.said

    @property
    def last_number(self) -> int:
        return self.transcript.last_number

    @property
    def spans(self) -> list[Span]:
        return build_spans(self.run, self.events, self.transcript.calls.values())

    @property
    def asked(self) -> str:
        """What the user said last."""
        said = [message for message in input_messages(self.run) if message["role"] == "user"]
        return said[-1]["text"] if said else ""

    @property
    def model_name(self) -> str:
        return model_name(self.run.configuration["model"])

    @property
    def asks_demo(self) -> bool:
        """Whether the built-in model answers, or did."""
        return self.run.is_demo or self.model_name.startswith("demo/")

    @property
    def duration_text(self) -> str:
        return format_duration(self.run.duration)

    @property
    def whole(self) -> str:
        """From the question to the end, with what it waited."""
        run = self.run
        return format_duration(run.finished_at - run.created_at) if run.finished_at else ""

    @property
    def seconds(self) -> float:
        """How long it has been running, for the page that goes on counting."""
        return round(self.run.duration.total_seconds(), 1) if self.run.duration else 0.0

    @property
    def first_text(self) -> str:
        """How long it took until the first word."""
        run = self.run
        return format_duration(run.first_text_at - run.started_at) if run.first_text_at and run.started_at else ""

    @property
    def tokens(self) -> int:
        return total_tokens(self.run.usage)

    @property
    def cost(self) -> str:
        return format_cost(self.run.cost)

    @property
    def warnings(self) -> list[str]:
        return [each["message"] if isinstance(each, dict) else str(each) for each in self.run.warnings]


def input_messages(run: AgentRun) -> list[dict[str, str]]:
    """The messages that were sent, each with its role and its words."""
    said = run.input.get("messages") if isinstance(run.input, dict) else None
    return [{"role": str(each.get("role", "user")), "text": message_text(each.get("content"))} for each in said or []]


def message_text(content: Any) -> str:
    """The text of a message: a string, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def build_run_views(runs: Iterable[AgentRun]) -> list[RunView]:
    """Runs with their events and the runs of their sub-agents: two queries for all of them."""
    runs = list(runs)
    events, children = defaultdict(list), defaultdict(list)
    for event in RunEvent.objects.filter(run__in=runs).order_by("run_id", "number"):
        events[event.run_id].append(event)
    for child in AgentRun.objects.filter(parent__in=runs).order_by("created_at").defer("configuration"):
        children[child.parent_id].append(child)
    return [RunView(run, events[run.pk], children[run.pk]) for run in runs]


class TotalCost(NamedTuple):
    """What a run took with those of its sub-agents; no cost where one of them has no known price."""

    tokens: int
    cost: str


def total_cost(run: AgentRun) -> TotalCost | None:
    """What a run took with all that it asked, however deep; None where it asked nobody."""
    level = child_runs([run])
    family = [run]
    while level:
        family += level
        level = child_runs(level)
    if len(family) == 1:
        return None
    costs = [each.cost for each in family if not each.is_demo]
    known = [cost for cost in costs if cost is not None]
    cost = format_cost(sum(known, Decimal())) if len(known) == len(costs) else ""
    return TotalCost(sum(total_tokens(each.usage) for each in family), cost)


def child_runs(runs: Iterable[AgentRun]) -> list[AgentRun]:
    return list(AgentRun.objects.filter(parent__in=runs).only("usage", "cost", "is_demo"))
