"""The chunks of an answer, as the wire has them: `{"type": …, "payload": {…}}`. One chunk is one event of its run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from agentcms.wire.validation import MAX_INTEGER, MIN_INTEGER, find_faults
from runs_app.models import RunEvent

Chunk = dict[str, Any]
Type = RunEvent.Type

LONGEST_VALUE = 200_000  # characters of one tool's result; the model is told all of it
# Pieces of one text that stand next to each other are one piece.
GROWING = ("text-delta", "reasoning-delta")
LAST = ("finish", "error", "abort")  # after one of these no more follow


def chunk(kind: str, **payload: Any) -> Chunk:
    return {"type": kind, "payload": to_storable_json(payload)}


def event_type(kind: str) -> str:
    """What an event with a chunk of this type is called."""
    if kind == "abort":
        return Type.FINISH
    return kind if kind in Type.values else Type.CHUNK


def append_delta(last: Chunk, following: Chunk) -> bool:
    """Add a piece of text to the piece before it, where they belong to one text."""
    kind, payload, more = following["type"], last["payload"], following["payload"]
    if kind not in GROWING or last["type"] != kind or payload["id"] != more["id"]:
        return False
    payload["text"] += more["text"]
    return True


def encode_chunk(run_id: Any, data: Chunk) -> bytes:
    """A chunk as a client reads it, in ASCII: some decode what arrives piece by piece, in the middle of a letter."""
    whole = {"type": data["type"], "runId": str(run_id), "from": "AGENT", "payload": data["payload"]}
    return json.dumps(whole, separators=(",", ":")).encode()


def to_storable_json(value: Any) -> Any:
    """A value as JSON that both databases keep: what a tool or a model says may be anything."""
    plain = to_jsonable_python(value, fallback=str, bytes_mode="base64")
    return plain if next(iter(find_faults(plain)), None) is None else _mended(plain)


def bounded(value: Any) -> Any:
    """A storable value that is not too long for an event: the beginning of its text, where it is."""
    plain = to_storable_json(value)
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    if len(text) <= LONGEST_VALUE:
        return plain
    return f"{text[:LONGEST_VALUE]}… ({len(text):,} characters in all)"


def _mended(value: Any, levels: int = 32) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        inner = {_mended(str(key)): _mended(each, levels - 1) for key, each in value.items()} if levels else {}
        return inner or (str(value) if value else {})
    if isinstance(value, list):
        return [_mended(each, levels - 1) for each in value] if levels else str(value)
    if isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value
