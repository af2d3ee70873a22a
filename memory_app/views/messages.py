"""Messages of a thread for its page: who said what, and how a signal reached the agent."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import OuterRef, Subquery

from access_app.caller import Caller
from agentcms.wire.timestamps import parse_timestamp
from agents_app.models import Agent
from memory_app.history.signal_markup import Signal, attribute_text
from memory_app.history.signal_payloads import ERROR, signal_of
from memory_app.history.thread_signals import QUEUED
from memory_app.history.turn_markup import AUTHOR_ATTRIBUTES
from memory_app.history.wire_messages import WireMessage, place_questions, wire_messages
from memory_app.models import Message, Participant, Thread
from runs_app.models import AgentRun

AGENT = "Agent"


@dataclass
class ThreadEntry:
    """A message as the template shows it: texts, and calls with their values as JSON."""

    number: int
    author: str
    at: datetime
    parts: list[dict[str, str]]
    chips: list[tuple[str, str]] = field(default_factory=list)  # kind of the chip and label
    attributes: list[tuple[str, str]] = field(default_factory=list)  # of a signal
    note: str = ""  # the state of a signal
    error: str = ""  # why no run will see a signal

    @property
    def version(self) -> str:
        """A text that changes when the entry does."""
        return f"{len(self.parts)} {self.note} {self.error}".strip()


def build_message_entries(thread: Thread, heads: Collection[int], user: Caller) -> list[ThreadEntry]:
    """Return the messages that begin with these rows, in order, as a user sees them."""
    rows = place_questions(thread.messages.filter(head_number__in=heads).order_by("number"))
    firsts: dict[int, Message] = {}
    for row in rows:
        firsts.setdefault(row.head_number or row.number, row)
    roles = {row.user_id: row.functional_role for row in Participant.objects.filter(thread=thread)}
    run_ids = {row.run_id for row in firsts.values() if row.role == Message.Role.ASSISTANT and row.run_id}
    agents = agent_names(run_ids, user)
    own_agent = thread.agent.name if thread.agent else thread.agent_key  # of messages that no run has written
    return [
        build_message_entry(row, message, roles, agents.get(row.run_id, "") if row.run_id else own_agent)
        for row, message in zip(firsts.values(), wire_messages(thread, rows), strict=True)
    ]


def agent_names(run_ids: Collection[UUID], user: Caller) -> dict[UUID, str]:
    """Return the name of the agent of each run, or the ID of one that the user may not see.

    Runs that are no longer stored are left out.
    """
    visible_names = Agent.objects.for_user(user).filter(pk=OuterRef("agent_id")).values("name")
    stored = AgentRun.objects.filter(pk__in=run_ids)
    runs = stored.values_list("pk", "agent_key", Subquery(visible_names)) if run_ids else ()
    return {run_id: name or key for run_id, key, name in runs}


def build_message_entry(row: Message, message: WireMessage, roles: Mapping[int, str], agent_name: str) -> ThreadEntry:
    """Return a message with its chips: that its author is an agent, a participant's role, or the kind of a signal."""
    entry = ThreadEntry(row.number, author_name(row), parse_timestamp(message["createdAt"]), build_parts(message))
    if row.role == Message.Role.SIGNAL:
        signal = signal_of(row)
        kind = "Message" if signal.is_from_user else f"Signal: {signal.tag}"
        entry.chips.append(("plain", kind))
        entry.attributes = shown_attributes(signal)
        entry.note, entry.error = signal_state(row)
    elif row.role != Message.Role.USER:
        entry.author = agent_name or row.author_name
        if entry.author:
            entry.chips.append(("plain", AGENT))
        else:
            entry.author = AGENT
    if row.author_id is not None and row.author_id in roles:
        entry.chips.append(("plain", roles[row.author_id] or "Participant"))
    return entry


def shown_attributes(signal: Signal) -> list[tuple[str, str]]:
    """Return the attributes of a signal as the model reads them, without its author."""
    attributes = {name: value for name, value in signal.attributes.items() if value is not None}
    return [(name, attribute_text(value)) for name, value in attributes.items() if name not in AUTHOR_ATTRIBUTES]


def author_name(row: Message) -> str:
    if row.author_name:
        return row.author_name
    return {Message.Role.USER: "User", Message.Role.SIGNAL: "Signal"}.get(Message.Role(row.role), AGENT)


def signal_state(row: Message) -> tuple[str, str]:
    """Return the state of a signal: that it waits, or why no run will see it."""
    delivery = row.delivery or {}
    if delivery.get(ERROR):
        return "", str(delivery[ERROR])
    if row.seen_by is None:
        return ("Waits for a run of its own" if delivery.get(QUEUED) else "Waits for a run"), ""
    return "", ""


def build_parts(message: WireMessage) -> list[dict[str, str]]:
    parts: list[dict[str, str]] = []
    for part in message["content"]["parts"]:
        if part["type"] == "text":
            parts.append({"text": part["text"]})
            continue
        call = part["toolInvocation"]
        result = json.dumps(call["result"], ensure_ascii=False, indent=2) if "result" in call else ""
        arguments = json.dumps(call["args"], ensure_ascii=False, indent=2)
        parts.append({"tool": call["toolName"], "arguments": arguments, "result": result})
    return parts
