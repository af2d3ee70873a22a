"""One prompt to an ACP agent: what it sends meanwhile, and what is decided."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentcms.wire.json_types import JSONObject
from tools_app.acp.permissions import Decisions, PermissionRequest

MAX_ANSWER_LENGTH = 1024 * 1024  # characters of the answer to one prompt
MAX_ACTIVITIES = 500  # events of one prompt in which the agent says what it does
MAX_ACTIVITIES_LENGTH = 16 * 1024 * 1024  # characters of them as JSON
MAX_AUDIT_EVENTS = 2000  # events of one prompt about its files and permissions


@dataclass(frozen=True)
class Update:
    """Something that the agent sends: a piece of its text or thoughts, or the payload of an event."""

    kind: str  # "text", "thought", or the type of an event, such as "acp-tool-call"
    text: str = ""
    payload: JSONObject = field(default_factory=dict)


@dataclass
class PromptTurn:
    """One prompt. `emit` gets its updates in order."""

    emit: Callable[[Update], None]
    decisions: Decisions
    request: PermissionRequest | None = None  # for which a person must be asked
    is_over: bool = False
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    tool_calls: dict[str, JSONObject] = field(default_factory=dict)  # what the agent said of each, by ID
    tool_call_length: int = 0  # characters of it, also of what was replaced
    approved_writes: set[tuple[str, str]] = field(default_factory=set)  # paths and contents
    text_length: int = 0
    activity_count: int = 0
    activities_length: int = 0
    audit_event_count: int = 0
    has_overflowed: bool = False

    @property
    def is_active(self) -> bool:
        return not self.is_over and self.request is None and not self.has_overflowed

    def add_text(self, kind: str, text: str) -> None:
        """Pass on a piece of the text or of the thoughts, unless there are too many."""
        if not self.is_active or not text:
            return
        self.text_length += len(text)
        if self.text_length > MAX_ANSWER_LENGTH:
            self.has_overflowed = True
            self.interrupted.set()
            return
        self.emit(Update(kind, text))

    def add_activity(self, kind: str, /, **payload: Any) -> None:
        """Pass on an event in which the agent says what it does, unless there are too many or they are too long."""
        self.activity_count += 1
        length = self.activities_length + len(json.dumps(payload))
        if not self.is_over and self.activity_count <= MAX_ACTIVITIES and length <= MAX_ACTIVITIES_LENGTH:
            self.activities_length = length
            self.emit(Update(kind, payload=payload))

    def add_audit_event(self, kind: str, /, **payload: Any) -> None:
        """Pass on an event about a file or a permission. Whatever else an agent sends does not suppress it."""
        self.audit_event_count += 1
        if not self.is_over and self.audit_event_count <= MAX_AUDIT_EVENTS:
            self.emit(Update(kind, payload=payload))

    def ask(self, request: PermissionRequest) -> None:
        """End the prompt, because a person must decide about a request."""
        if self.is_active:
            self.request = request
            self.interrupted.set()
