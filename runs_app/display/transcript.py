"""The transcript of a run: its texts and tool calls in order, built from its events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.configuration.references import find_entry
from agents_app.registry import Kind
from runs_app.display.activities import ACTIVITY_PREFIX, THOUGHT, ActivityPart, read_activity
from runs_app.display.formats import format_duration
from runs_app.display.passages import PassageRow, read_passages
from runs_app.events.stream_chunks import truncate_text
from runs_app.models import AgentRun, RunEvent
from runs_app.models.pending_call import stored_call_id

# Prefixes of tool names, with the displayed noun and the kind of entry.
PREFIX_KINDS = {"workflow-": ("workflow", Kind.WORKFLOW), "agent-": ("sub-agent", Kind.AGENT)}
MAX_DISPLAYED_LENGTH = 20_000  # characters of one value; the event has the complete value


class AnswerSpan(NamedTuple):
    """A piece of a text. It is marked if it differs from another answer."""

    text: str
    marked: bool


@dataclass
class TextPart:
    """A text of the answer or of its reasoning."""

    kind: str  # "text" or "reasoning"
    text: str = ""
    spans: list[AnswerSpan] = field(default_factory=list)  # the text in pieces, if it is compared with another answer


@dataclass
class ToolCallPart:
    """A call of a tool, workflow or sub-agent."""

    id: str
    name: str
    arguments: str = ""
    result: str = ""
    # "running", "done" or "failed", and in views "waiting", "decided", "unfinished" or "not-run"
    state: str = "running"
    decision: str = ""  # of a person, if the call is decided and not carried out, or not yet
    started_at: datetime | None = None
    ended_at: datetime | None = None
    child: AgentRun | None = None  # the run of a sub-agent
    is_edited: bool = False  # whether a person has changed the arguments
    kind: str = "call"
    whole_result: JSONValue = None  # of which `result` may be the beginning

    @property
    def prefix(self) -> str:
        return next((prefix for prefix in PREFIX_KINDS if self.name.startswith(prefix)), "")

    @property
    def key(self) -> str:
        """The key in the registry."""
        return self.name.removeprefix(self.prefix)

    @property
    def stored_id(self) -> str:
        """The ID as the row of a call that waited has it."""
        return stored_call_id(self.id)

    @property
    def noun(self) -> str:
        return PREFIX_KINDS[self.prefix][0] if self.prefix else "tool"

    @property
    def title(self) -> str:
        """The registered title, or the key of an unregistered tool."""
        entry = find_entry(PREFIX_KINDS[self.prefix][1] if self.prefix else Kind.TOOL, self.key)
        return entry.title if entry else self.key

    @property
    def passages(self) -> list[PassageRow]:
        """The passages that a search of a knowledge base returned."""
        return read_passages(self.whole_result) if self.state == "done" else []

    @property
    def duration_text(self) -> str:
        return format_duration(self.ended_at - self.started_at) if self.started_at and self.ended_at else ""


AnswerPart = TextPart | ToolCallPart | ActivityPart


class Transcript:
    """The parts of an answer. Events of one run are added in order."""

    def __init__(self, events: Iterable[RunEvent] = ()) -> None:
        self.parts: list[AnswerPart] = []
        self.calls: dict[str, ToolCallPart] = {}
        self.activities: dict[str, ActivityPart] = {}  # by key
        self.last_number = 0
        self.answer_start: int | None = None  # the number of parts before the current step, once one has begun
        self.text_starts: list[tuple[int, int]] = []  # of each text: the number of its event, and its position
        self.has_cached_answer = False
        for event in events:
            self.add(event)

    def add(self, event: RunEvent) -> None:
        self.last_number = event.number
        payload = event.data.get("payload") or {}
        match event.data.get("type"):
            case "step-start":
                self.answer_start = len(self.parts)
            case "step-discarded":
                self.discard_answer(payload)
            case "text-start" | "reasoning-start" as kind:
                self.text_starts.append((event.number, len(self.parts)))
                self.parts.append(TextPart(kind.removesuffix("-start")))
            case "text-delta" | "reasoning-delta" as kind:
                self.append_text(kind.removesuffix("-delta"), payload)
            case "tool-call":
                self.start_call(payload, event.created_at)
            case "step-finish" if (payload.get("metadata") or {}).get("cache") == "hit":
                self.has_cached_answer = True
            case "tool-result" | "tool-error" as kind:
                has_failed = kind == "tool-error" or bool(payload.get("isError"))
                self.finish_call(payload, event.created_at, has_failed=has_failed)
            case str() as kind if kind.startswith(ACTIVITY_PREFIX):
                self.add_activity(read_activity(kind, payload))

    def discard_answer(self, payload: JSONObject) -> None:
        """Remove the beginning of an answer, which another process repeats."""
        start = self.answer_start
        if start is None:  # readers of the answer alone are not told where steps begin
            positions = (position for number, position in self.text_starts if number >= payload["fromEvent"])
            start = next(positions, len(self.parts))
        del self.parts[start:]

    def add_activity(self, activity: ActivityPart | None) -> None:
        """Add what an agent outside of this application did, in place of what it said of the same before."""
        if activity is None:
            return
        if activity.key and activity.key in self.activities:
            vars(self.activities[activity.key]).update(vars(activity))
            return
        last = self.parts[-1] if self.parts else None
        if activity.label == THOUGHT and isinstance(last, ActivityPart) and last.label == THOUGHT:
            last.text += activity.text
            return
        self.activities[activity.key] = activity
        self.parts.append(activity)

    def append_text(self, kind: str, payload: JSONObject) -> None:
        """Append a delta to the last part. Start a part if the delta has no start event."""
        last = self.parts[-1] if self.parts else None
        if not (isinstance(last, TextPart) and last.kind == kind):
            last = TextPart(kind)
            self.parts.append(last)
        last.text += str(payload.get("text", ""))

    def start_call(self, payload: JSONObject, at: datetime) -> None:
        call = ToolCallPart(str(payload.get("toolCallId", "")), str(payload.get("toolName", "")), started_at=at)
        call.arguments = value_as_text(payload.get("args"))
        self.calls[call.id] = call
        self.parts.append(call)

    def start_after_decision(self, call_id: str, at: datetime) -> None:
        """Let a call that waited for a person begin at the decision. The wait is not work of its tool."""
        for call in self.calls.values():
            if call.stored_id == call_id and call.started_at is not None:
                call.started_at = max(call.started_at, at)

    def finish_call(self, payload: JSONObject, at: datetime, *, has_failed: bool) -> None:
        call = self.calls.get(str(payload.get("toolCallId", "")))
        if call is None:
            return
        call.whole_result = payload.get("error") if "error" in payload else payload.get("result")
        call.result = value_as_text(call.whole_result)
        call.state, call.ended_at = "failed" if has_failed else "done", at
        if "args" in payload:  # a person has changed them
            call.arguments, call.is_edited = value_as_text(payload["args"]), True

    @property
    def visible_parts(self) -> list[AnswerPart]:
        """The parts that are not blank."""
        return [part for part in self.parts if isinstance(part, ToolCallPart) or part.text]


def value_as_text(value: object) -> str:
    """Return a value as text: texts unchanged, other values as indented JSON."""
    if value is None or value == {}:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return truncate_text(text, MAX_DISPLAYED_LENGTH)
