"""Runs for display on pages: input, answer and usage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from access_app.caller import Caller
from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.references import FIELD_KINDS
from runs_app.display.formats import format_cost, format_duration, model_name, total_tokens
from runs_app.display.spans import Span, build_spans
from runs_app.display.transcript import AnswerPart, Transcript
from runs_app.events.redaction import REDACTED_ERROR, redact_chunk
from runs_app.models import AgentRun, PendingCall, RunClaim, RunEvent


@dataclass
class RunView:
    """A run with its events and child runs."""

    run: AgentRun
    events: Sequence[RunEvent] = ()
    children: Sequence[AgentRun] = field(default_factory=list)
    has_details: bool = True  # False for readers who may only see the question and the answer
    # The calls for which a suspended run waits, from `add_cards()`. Pages can decide them.
    cards: Sequence[JSONMapping] = ()
    # How the others of its calls were decided, by their IDs. They are carried out when all are decided.
    decisions: Mapping[str, str] = field(default_factory=dict)
    # Why calls were not carried out, by their IDs: somebody declined them, or nobody decided in time.
    refusals: dict[str, str] = field(default_factory=dict)
    claims: Sequence[RunClaim] = ()
    waits: Sequence[PendingCall] = ()  # the calls for which the run waited, or waits

    @cached_property
    def transcript(self) -> Transcript:
        transcript = Transcript(self.events)
        for child in self.children:
            if call := transcript.calls.get(child.parent_call_id):
                call.child = child
        state = self.state_of_open_calls
        for call in transcript.calls.values():
            if call.state == "running" and call.stored_id in self.decisions:
                call.state, call.decision = "decided", self.decisions[call.stored_id]
            elif call.state == "running" and state is not None:
                call.state = state
            elif call.state in {"running", "failed"} and call.stored_id in self.refusals:
                call.state, call.decision = "not-run", self.refusals[call.stored_id]
        for wait in self.waits:
            if wait.run_id == self.run.pk and wait.decided_at is not None:
                transcript.start_after_decision(wait.call_id, wait.decided_at)
        return transcript

    @property
    def may_have_refusals(self) -> bool:
        """True if the result of a call is an error, as that of a declined one is too, or if one may follow."""
        if self.run.segment and not self.run.is_finished:
            return True
        payloads = [event.data.get("payload") for event in self.events if event.data.get("type") == "tool-result"]
        return any(payload and payload.get("isError") for payload in payloads)

    @property
    def state_of_open_calls(self) -> str | None:
        """The state of the calls without a result, or None while they are running."""
        if self.run.is_finished:
            return "unfinished"
        return "waiting" if self.is_waiting else None

    @property
    def is_waiting(self) -> bool:
        """True if the run is suspended until a person decides. A suspended run may also wait for a working child."""
        return self.run.status == AgentRun.Status.SUSPENDED and bool(self.cards or not self.has_details)

    @property
    def parts(self) -> list[AnswerPart]:
        return self.transcript.visible_parts

    @property
    def has_cached_answer(self) -> bool:
        """Return whether the response cache answered instead of the model."""
        return self.has_details and self.transcript.has_cached_answer

    @property
    def last_number(self) -> int:
        return self.transcript.last_number

    @cached_property
    def spans(self) -> list[Span]:
        return build_spans(self.run, self.events, self.transcript.calls.values(), self.waits, self.claims)

    @property
    def has_shortened_waits(self) -> bool:
        return any(span.is_shortened for span in self.spans)

    @property
    def question(self) -> str:
        """The last message of the user."""
        texts = [message["text"] for message in input_messages(self.run) if message["role"] == "user"]
        return texts[-1] if texts else ""

    @property
    def model_name(self) -> str:
        return model_name(self.run.configuration["model"]) if self.has_details else ""

    @property
    def uses_demo_model(self) -> bool:
        return self.has_details and (self.run.is_demo or self.model_name.startswith("demo/"))

    @property
    def error(self) -> str:
        return self.run.error if self.has_details else self.run.error and REDACTED_ERROR

    @property
    def duration_text(self) -> str:
        return format_duration(self.run.duration)

    @property
    def total_duration_text(self) -> str:
        """The time from creation to the end, including the wait for a process."""
        run = self.run
        return format_duration(run.finished_at - run.created_at) if run.finished_at else ""

    @property
    def elapsed_seconds(self) -> float:
        """The seconds since the start, from which the page script continues to count."""
        return round(self.run.duration.total_seconds(), 1) if self.run.duration else 0.0

    @property
    def first_text_delay(self) -> str:
        """The time from the start to the first text."""
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
        """The warnings of the run, each once. Those about missing entries say what that meant for the run."""
        # All tools of a disabled server have the same warning.
        texts = map(stored_warning_text, self.run.warnings if self.has_details else [])
        return [*dict.fromkeys(texts)]


def stored_warning_text(warning: object) -> str:
    """Return a stored warning as text."""
    if not isinstance(warning, dict):
        return str(warning)
    message = str(warning["message"])
    is_missing_entry = warning.get("field") in FIELD_KINDS and message.startswith("No ")
    return f"{message} The agent ran without it." if is_missing_entry else message


def input_messages(run: AgentRun) -> list[dict[str, str]]:
    """Return the messages of the input with role and text."""
    messages = run.input.get("messages") if isinstance(run.input, dict) else None
    return [
        {"role": str(message.get("role", "user")), "text": message_text(message.get("content"))}
        for message in messages or []
    ]


def message_text(content: object) -> str:
    """Return the text of a message, whose content is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def build_run_views(runs: Iterable[AgentRun], user: Caller) -> list[RunView]:
    """Return views of runs `with_roles` for a user. Events and child runs of all are loaded in two queries."""
    runs = list(runs)
    events, children = defaultdict(list), defaultdict(list)
    for event in RunEvent.objects.filter(run__in=runs).order_by("run_id", "number"):
        events[event.run_id].append(event)
    child_rows = AgentRun.objects.filter(parent__in=runs).defer("stored_configuration", "conversation")
    for child in child_rows.order_by("created_at"):
        children[child.parent_id].append(child)
    return [build_run_view(run, events[run.pk], children[run.pk], user) for run in runs]


def build_run_view(run: AgentRun, events: Sequence[RunEvent], children: Sequence[AgentRun], user: Caller) -> RunView:
    if run.details_visible_to(user):
        return RunView(run, events, children)
    for event in events:  # in place: these rows are only read
        event.data = redact_chunk(event.data)
    return RunView(run, [event for event in events if event.data], has_details=False)


def add_waits(run_view: RunView) -> None:
    """Add the waits for people and the claims of processes to a view, for its time line.

    The first run of a tree has the waits of the runs below it too.
    """
    if not run_view.has_details:
        return
    run = run_view.run
    calls = PendingCall.objects.filter(root_id=run.pk) if run.parent_id is None else run.pending_calls.all()
    run_view.waits = list(calls.exclude(kind=PendingCall.Kind.CHILD).order_by("created_at"))
    run_view.claims = list(run.claims.all())


class TotalCost(NamedTuple):
    """The usage of a run and all its child runs. The cost is blank if the price of any run is unknown."""

    tokens: int
    cost: str


def total_cost(run: AgentRun) -> TotalCost | None:
    """Return the usage of a run and its child runs at all depths, or None without child runs."""
    level = child_runs([run])
    tree = [run]
    while level:
        tree += level
        level = child_runs(level)
    if len(tree) == 1:
        return None
    # Runs of demo models cost nothing.
    costs = [member.cost for member in tree if not member.is_demo]
    known_costs = [cost for cost in costs if cost is not None]
    cost = (format_cost(sum(known_costs, Decimal())) if costs else "$0") if len(known_costs) == len(costs) else ""
    return TotalCost(sum(total_tokens(member.usage) for member in tree), cost)


def child_runs(runs: Iterable[AgentRun]) -> list[AgentRun]:
    return list(AgentRun.objects.filter(parent__in=runs).only("usage", "cost", "is_demo"))
