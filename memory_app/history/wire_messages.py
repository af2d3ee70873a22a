"""Messages in the form of the published client, and their conversion into rows and back.

A message of the client has texts and tool invocations as parts. Rows have the JSON of pydantic-ai.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from django.utils import timezone

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.timestamps import format_timestamp, parse_timestamp
from agentcms.wire.validation import NOT_A_TEXT_MESSAGE, NOT_AN_OBJECT_MESSAGE
from agents_app.configuration.schema import ConfigError, Issue, collecting_issues
from memory_app.history.message_data import RESULT_KINDS
from memory_app.history.messages import NewMessage
from memory_app.history.turn_markup import is_spoken
from memory_app.models import Message, Thread

MAX_MESSAGE_KB = 512
MAX_ID_LENGTH = 256
MARKER_TYPES = ("step-start",)  # parts without content
ATTACHMENT_MEMBERS = ("experimental_attachments", "attachments")  # of messages, with files beside the parts
ATTACHMENTS_MESSAGE = "Files are not supported. Leave this out."
UNSUPPORTED_PART_MESSAGE = "Only text and tool-invocation parts are supported. Leave out files and other parts."
ROLE_MESSAGE = "This must be user or assistant. Instructions belong to the agent, and tool results to its messages."

WireMessage = JSONObject


# --- From rows


def place_questions(rows: Iterable[Message]) -> list[Message]:
    """Return rows, which are sorted by number, with each question before the signals that joined its run.

    A signal is stored when it comes, and the question when its run ends.
    """
    placed: list[Message] = []
    for row in rows:
        place = len(placed)
        while row.role == Message.Role.USER and place and is_later_signal(placed[place - 1], row):
            place -= 1
        placed.insert(place, row)
    return placed


def is_later_signal(row: Message, question: Message) -> bool:
    return row.role == Message.Role.SIGNAL and row.created_at > question.created_at


def wire_messages(thread: Thread, rows: Iterable[Message]) -> list[WireMessage]:
    """Return the messages of rows, which are sorted by number. Rows with one head are one message."""
    groups = groupby(rows, key=lambda row: row.head_number or row.number)
    return [_wire_message(thread, [*group]) for _, group in groups]


def _wire_message(thread: Thread, rows: Sequence[Message]) -> WireMessage:
    head = rows[0]
    parts = [*_wire_parts(rows)]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    metadata = (head.attributes or {}).get("metadata")
    if head.role == Message.Role.SIGNAL:
        metadata = {**(metadata or {}), "signal": (head.attributes or {}).get("signal")}
    author = {"author": {"id": head.author_id, "name": head.author_name}} if head.author_name else {}
    return {
        "id": head.key,
        "threadId": thread.key,
        "resourceId": thread.resource_key,
        "role": wire_role(head),
        "createdAt": format_timestamp(head.created_at),
        "type": "v2",
        "content": {
            "format": 2,
            "parts": parts,
            **({"content": "\n".join(texts)} if texts else {}),
            **({"metadata": metadata} if metadata is not None else {}),
        },
        **author,
    }


def wire_role(message: Message) -> str:
    """Return the role of a message for clients. The words of a person are those of a user, also in a signal."""
    if is_spoken(message):
        return "user"
    return "signal" if message.role == Message.Role.SIGNAL else "assistant"


def _wire_parts(rows: Sequence[Message]) -> Iterator[JSONObject]:
    results = {part.get("tool_call_id"): part for row in rows for part in _parts(row, RESULT_KINDS)}
    for row in rows:
        if row.role == Message.Role.SIGNAL:
            yield {"type": "text", "text": row.text}
            continue
        for part in _parts(row, ("text", "user-prompt", "tool-call")):
            if part["part_kind"] == "tool-call":
                yield {"type": "tool-invocation", "toolInvocation": _invocation(part, results)}
            else:
                yield {"type": "text", "text": part["content"] if isinstance(part["content"], str) else row.text}


def _parts(row: Message, kinds: Sequence[str]) -> Iterator[JSONObject]:
    return (part for part in row.data.get("parts") or () if part.get("part_kind") in kinds)


def _invocation(call: JSONMapping, results: Mapping[Any, JSONMapping]) -> JSONObject:
    result = results.get(call.get("tool_call_id"))
    return {
        "state": "result" if result else "call",
        "toolCallId": call.get("tool_call_id"),
        "toolName": call.get("tool_name"),
        "args": _arguments(call.get("args")),
        **({"result": result.get("content")} if result else {}),
    }


def _arguments(value: object) -> object:
    if not isinstance(value, str):
        return {} if value is None else value
    try:
        return json.loads(value)
    # A model may have written arguments that are not JSON. Clients see them as they are.
    except (ValueError, RecursionError):
        return value


def ui_messages(messages: Iterable[WireMessage]) -> list[WireMessage]:
    """Return messages in the form that user interfaces show."""
    return [
        {
            "id": message["id"],
            "role": message["role"],
            "createdAt": message["createdAt"],
            "content": message["content"].get("content", ""),
            "parts": message["content"]["parts"],
            # The attributes and the metadata of a signal, with which pages show names and pictures.
            **({"metadata": message["content"]["metadata"]} if "metadata" in message["content"] else {}),
        }
        for message in messages
    ]


# --- To rows


def parse_wire_message(value: object, path: str) -> list[NewMessage]:
    """Return a message of the client as rows. Raise ConfigError with wire paths for what cannot be stored."""
    if not isinstance(value, dict):
        raise ConfigError([Issue(path, "A message must be an object.")])
    if len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) > MAX_MESSAGE_KB * 1024:
        raise ConfigError([Issue(path, f"A message must not exceed {MAX_MESSAGE_KB} KB. Send a shorter one.")])
    issues = [*attachment_issues(value, path)]
    role = value.get("role")
    if role not in ("user", "assistant"):
        issues.append(Issue(f"{path}.role", ROLE_MESSAGE))
    key = value.get("id") or ""
    if not isinstance(key, str) or len(key) > MAX_ID_LENGTH:
        issues.append(Issue(f"{path}.id", f"This must be a text of at most {MAX_ID_LENGTH} characters."))
    created_at, parts = timezone.now(), []
    with collecting_issues(issues):
        created_at = _parse_time(value.get("createdAt"), f"{path}.createdAt")
    with collecting_issues(issues):
        parts = [*_parse_content(value.get("content"), f"{path}.content", str(role))]
    if issues:
        raise ConfigError(issues)
    rows = _user_rows(parts, created_at) if role == "user" else _assistant_rows(parts, created_at)
    attributes = _attributes(value.get("content"))
    return [
        NewMessage(data, key if not index else "", attributes if not index else None, created_at, bool(index))
        for index, data in enumerate(rows)
    ]


def attachment_issues(message: JSONMapping, path: str) -> Iterator[Issue]:
    """Yield an issue for each list of files of a message, and of its content. Without the files it would differ."""
    for name in ATTACHMENT_MEMBERS:
        if message.get(name):
            yield Issue(f"{path}.{name}", ATTACHMENTS_MESSAGE)
        content = message.get("content")
        if isinstance(content, dict) and content.get(name):
            yield Issue(f"{path}.content.{name}", ATTACHMENTS_MESSAGE)


def _attributes(content: object) -> JSONObject | None:
    metadata = content.get("metadata") if isinstance(content, dict) else None
    return {"metadata": metadata} if isinstance(metadata, dict) else None


def _parse_time(value: JSONValue, path: str) -> datetime:
    if value is None:
        return timezone.now()
    try:
        return parse_timestamp(value)
    except (TypeError, ValueError, AttributeError):
        raise ConfigError([Issue(path, "Give an ISO 8601 time.")]) from None


def _parse_content(content: object, path: str, role: str) -> Iterator[JSONObject]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if isinstance(content, list):
        content = {"parts": content}
    elif isinstance(content, dict):
        path = f"{path}.parts"
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list):
        raise ConfigError([Issue(path, "The content must be a text or have a list of parts.")])
    issues: list[Issue] = []
    is_empty = True
    for index, part in enumerate(parts):
        with collecting_issues(issues):
            if (parsed := _parse_part(part, f"{path}[{index}]", role)) is not None:
                is_empty = False
                yield parsed
    if issues:
        raise ConfigError(issues)
    if is_empty:
        raise ConfigError([Issue(path, "The message is empty. Send a text.")])


def _parse_part(part: JSONValue, path: str, role: str) -> JSONObject | None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in MARKER_TYPES:
        return None
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    invocation = part.get("toolInvocation") if kind == "tool-invocation" else None
    if not isinstance(invocation, dict) or role == "user":
        raise ConfigError([Issue(path, UNSUPPORTED_PART_MESSAGE)])
    for name in ("toolCallId", "toolName"):
        if not isinstance(invocation.get(name), str) or not invocation[name]:
            raise ConfigError([Issue(f"{path}.toolInvocation.{name}", NOT_A_TEXT_MESSAGE)])
    if not isinstance(invocation.get("args", {}), dict):
        raise ConfigError([Issue(f"{path}.toolInvocation.args", NOT_AN_OBJECT_MESSAGE)])
    return {"type": "tool-invocation", **invocation}


def _user_rows(parts: Iterable[JSONMapping], at: datetime) -> list[JSONObject]:
    stamp = at.isoformat()
    prompts = [{"part_kind": "user-prompt", "content": part["text"], "timestamp": stamp} for part in parts]
    return [{"kind": "request", "parts": prompts}]


def _assistant_rows(parts: Iterable[JSONMapping], at: datetime) -> list[JSONObject]:
    """Return responses, each followed by a request with the results of its calls."""
    rows: list[JSONObject] = []
    answer: list[JSONObject] = []
    results: list[JSONObject] = []

    def close() -> None:
        if answer:
            rows.append({"kind": "response", "parts": [*answer], "timestamp": at.isoformat()})
        if results:
            rows.append({"kind": "request", "parts": [*results]})
        answer.clear()
        results.clear()

    for part in parts:
        if part["type"] == "text":
            if results:
                close()
            answer.append({"part_kind": "text", "content": part["text"]})
        else:
            answer.append(_call_part(part))
            if part.get("state") == "result":
                results.append(_result_part(part, at))
    close()
    return rows


def _call_part(part: JSONMapping) -> JSONObject:
    identity = {"tool_name": part["toolName"], "tool_call_id": part["toolCallId"]}
    return {"part_kind": "tool-call", "args": part.get("args") or {}, **identity}


def _result_part(part: JSONMapping, at: datetime) -> JSONObject:
    identity = {"tool_name": part["toolName"], "tool_call_id": part["toolCallId"]}
    return {"part_kind": "tool-return", "content": part.get("result"), "timestamp": at.isoformat(), **identity}
