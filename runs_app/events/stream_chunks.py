"""Chunks of an answer in wire format: `{"type": …, "payload": {…}}`. Each event of a run stores one chunk."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from pydantic_core import to_jsonable_python

from agentcms.wire.canonical import text_or_json
from agentcms.wire.json_types import JSONObject, JSONValue
from agentcms.wire.validation import MAX_INTEGER, MIN_INTEGER, find_json_faults
from runs_app.models import RunEvent

StreamChunk = JSONObject

MAX_CHUNK_VALUE_LENGTH = 200_000  # characters of one tool result in an event; the model receives the whole result
DELTA_TYPES = ("text-delta", "reasoning-delta")  # consecutive deltas of one text become one event
FINAL_TYPES = ("finish", "error", "abort")  # the last chunk of a run has one of these types
SUSPENDED_TYPE = "suspended"  # the last chunk before a run waits for people


def build_chunk(kind: str, /, **payload: Any) -> StreamChunk:
    return {"type": kind, "payload": to_storable_json(payload)}


def event_type(kind: str) -> str:
    """Return the RunEvent type for a chunk type."""
    if kind == "abort":
        return RunEvent.Type.FINISH
    return kind if kind in RunEvent.Type.values else RunEvent.Type.CHUNK


def append_delta(last: StreamChunk, following: StreamChunk) -> bool:
    """Append a delta to the previous chunk. Return False if they do not belong to the same text."""
    kind, payload, delta = following["type"], last["payload"], following["payload"]
    if kind not in DELTA_TYPES or last["type"] != kind or payload["id"] != delta["id"]:
        return False
    payload["text"] += delta["text"]
    return True


def encode_chunk(run_id: UUID | str, data: StreamChunk) -> bytes:
    """Return a chunk as JSON in ASCII. Some clients decode partial data and would cut a multi-byte character."""
    run_id = data.get("runId", run_id)  # a stream may have chunks of several runs
    content = "data" if data["type"].startswith("data-") else "payload"  # as the published protocol names it
    body = {"type": data["type"], "runId": str(run_id), "from": data.get("from", "AGENT"), content: data["payload"]}
    if data["type"] == "object-result":
        body["object"] = data["payload"]["object"]  # where the published protocol has it
    return json.dumps(body, separators=(",", ":")).encode()


def to_storable_json(value: object, *, fallback: Callable[[Any], str] = str) -> JSONValue:
    """Return a value of any type as JSON that both databases can store. `fallback` makes texts of other types."""
    plain = to_jsonable_python(value, fallback=fallback, bytes_mode="base64")
    return plain if next(iter(find_json_faults(plain)), None) is None else _make_storable(plain)


def truncate_value(value: object) -> object:
    """Return a storable value, or the beginning of its text if it is too long for an event."""
    plain = to_storable_json(value)
    text = text_or_json(plain)
    return plain if len(text) <= MAX_CHUNK_VALUE_LENGTH else truncate_text(text, MAX_CHUNK_VALUE_LENGTH)


def truncate_text(text: str, max_length: int) -> str:
    """Return a text, or its first `max_length` characters with a note about its length."""
    if len(text) <= max_length:
        return text
    return f"{text[:max_length]}… ({len(text):,} characters in total)"


def _make_storable(value: object, levels: int = 32) -> object:
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        inner = (
            {_make_storable(str(key)): _make_storable(item, levels - 1) for key, item in value.items()}
            if levels
            else {}
        )
        return inner or (str(value) if value else {})
    if isinstance(value, list):
        return [_make_storable(item, levels - 1) for item in value] if levels else str(value)
    if isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value
