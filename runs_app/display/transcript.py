"""The events of a run as people read them: what was said and what was called, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.registry import Kind, registry
from runs_app.display.formats import format_duration
from runs_app.models import RunEvent

# What a tool's name begins with where it is no tool, with the word for it.
PREFIX_KINDS = {"workflow-": ("workflow", Kind.WORKFLOW), "agent-": ("sub-agent", Kind.AGENT)}
MAX_DISPLAYED_LENGTH = 20_000  # characters of one value; the event has it whole


@dataclass
class TextPart:
    """A passage of the answer, or of what the model thought before it."""

    kind: str  # "text" or "reasoning"
    text: str = ""


@dataclass
class ToolCallPart:
    """A tool, workflow or sub-agent that the model called."""

    id: str
    name: str
    arguments: str = ""
    result: str = ""
    state: str = "running"  # "running", "done" or "failed"
    began_at: datetime | None = None
    ended_at: datetime | None = None
    child: Any = None  # the run of a sub-agent
    kind: str = "call"

    @property
    def prefix(self) -> str:
        return next((start for start in PREFIX_KINDS if self.name.startswith(start)), "")

    @property
    def key(self) -> str:
        """What it is registered as."""
        return self.name.removeprefix(self.prefix)

    @property
    def noun(self) -> str:
        return PREFIX_KINDS[self.prefix][0] if self.prefix else "tool"

    @property
    def title(self) -> str:
        """What people call it; its key, where nothing is registered."""
        entry = registry.get(PREFIX_KINDS[self.prefix][1] if self.prefix else Kind.TOOL, self.key)
        return entry.title if entry else self.key

    @property
    def duration_text(self) -> str:
        return format_duration(self.ended_at - self.began_at) if self.began_at and self.ended_at else ""


AnswerPart = TextPart | ToolCallPart


class Transcript:
    """The parts of an answer so far. Feed it the events of one run, in order."""

    def __init__(self, events: Iterable[RunEvent] = ()) -> None:
        self.parts: list[AnswerPart] = []
        self.calls: dict[str, ToolCallPart] = {}
        self.last_number = 0
        for event in events:
            self.add(event)

    def add(self, event: RunEvent) -> None:
        self.last_number = event.number
        payload = event.data.get("payload") or {}
        match event.data.get("type"):
            case "text-start":
                self.parts.append(TextPart("text"))
            case "text-delta":
                self.say("text", payload)
            case "reasoning-start":
                self.parts.append(TextPart("reasoning"))
            case "reasoning-delta":
                self.say("reasoning", payload)
            case "tool-call":
                self.call(payload, event.created_at)
            case "tool-result" | "tool-error" as kind:
                self.answer(payload, event.created_at, failed=kind == "tool-error" or bool(payload.get("isError")))

    def say(self, kind: str, payload: dict[str, Any]) -> None:
        """Go on with the passage; a delta without a start of its own begins one."""
        last = self.parts[-1] if self.parts else None
        if not (isinstance(last, TextPart) and last.kind == kind):
            last = TextPart(kind)
            self.parts.append(last)
        last.text += str(payload.get("text", ""))

    def call(self, payload: dict[str, Any], at: datetime) -> None:
        call = ToolCallPart(str(payload.get("toolCallId", "")), str(payload.get("toolName", "")), began_at=at)
        call.arguments = format_value(payload.get("args"))
        self.calls[call.id] = call
        self.parts.append(call)

    def answer(self, payload: dict[str, Any], at: datetime, *, failed: bool) -> None:
        call = self.calls.get(str(payload.get("toolCallId", "")))
        if call is None:
            return
        call.result = format_value(payload.get("error") if "error" in payload else payload.get("result"))
        call.state, call.ended_at = "failed" if failed else "done", at

    @property
    def said(self) -> list[AnswerPart]:
        """The parts that have something to show."""
        return [part for part in self.parts if isinstance(part, ToolCallPart) or part.text]


def format_value(value: Any) -> str:
    """A value as a page shows it: words as they are, everything else as indented JSON."""
    if value is None or value == {}:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return (
        text
        if len(text) <= MAX_DISPLAYED_LENGTH
        else f"{text[:MAX_DISPLAYED_LENGTH]}… ({len(text):,} characters in all)"
    )
