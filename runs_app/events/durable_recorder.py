"""The recorder of a durable run, which leaves out the chunks that an earlier process has written.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Max, Min

from agentcms.wire.json_types import JSONMapping
from runs_app.background.stream_chunks import STARTED_TYPE, dispatch_chunks
from runs_app.events.recorder import Recorder
from runs_app.events.stream_chunks import StreamChunk, build_chunk
from runs_app.models import RunEvent

CALL_TYPES = (RunEvent.Type.TOOL_CALL, RunEvent.Type.TOOL_RESULT)
STEP_TYPES = (RunEvent.Type.STEP_START, RunEvent.Type.STEP_FINISH)
ANSWER_CHUNKS = ("text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end")

ChunkIdentity = tuple[str, str]  # the type of a chunk and the ID of its tool call


@dataclass
class WrittenEvents:
    """The events of a run that earlier processes have written."""

    counts: Counter[ChunkIdentity] = field(default_factory=Counter)
    step_count: int = 0
    answer_from: int | None = None  # the number of the first event of the last answer, which may be incomplete


def load_written_events(run_id: UUID, last_number: int) -> WrittenEvents:
    """Return the written events of the segment of a run whose last event has this number."""
    written = WrittenEvents()
    if last_number == 0:
        return written
    written.counts["start", ""] = 1
    events = RunEvent.objects.filter(run=run_id)
    suspension = events.filter(type=RunEvent.Type.SUSPENDED).aggregate(last=Max("number"))["last"] or 0
    events = events.filter(number__gt=suspension)
    last_step = 0
    rows = events.filter(type__in=(*STEP_TYPES, *CALL_TYPES)).values_list(
        "number", "type", "data__payload__toolCallId"
    )
    for number, kind, call_id in rows:
        written.counts[kind, str(call_id or "") if kind in CALL_TYPES else ""] += 1
        last_step = number if kind == RunEvent.Type.STEP_START else last_step
    written.step_count = written.counts[RunEvent.Type.STEP_START, ""]
    answer = events.filter(type=RunEvent.Type.CHUNK, number__gt=last_step, data__type__in=ANSWER_CHUNKS)
    written.answer_from = answer.aggregate(first=Min("number"))["first"]
    return written


class DurableRecorder(Recorder):
    """Converter of the events of a durable run into chunks."""

    def __init__(self, write: Callable[[StreamChunk], None], message_id: str, written: WrittenEvents) -> None:
        super().__init__(self.add_once, message_id)
        self.write = write
        self.written = written

    def add_once(self, chunk: StreamChunk) -> None:
        """Write a chunk unless an earlier process, or the step of a call, has written it."""
        identity = chunk_identity(chunk)
        if identity is not None and self.written.counts[identity] > 0:
            self.written.counts[identity] -= 1
        else:
            self.write(chunk)

    def record(self, event: object) -> None:
        for chunk in self._chunks(event):
            if chunk["type"] != STARTED_TYPE:  # `record_result` has written it
                self.add(chunk)

    def begin_answer(self) -> None:
        """Record that an answer begins. Its readers discard what an earlier process has written of it."""
        if self.written.answer_from is not None and self.steps == self.written.step_count:
            self.write(build_chunk("step-discarded", fromEvent=self.written.answer_from))
        self.written.answer_from = None

    def record_result(self, call_id: str, name: str, result: object) -> None:
        """Record the result of a tool call as its step returns it.

        Results of other kinds, such as a request to correct the arguments, are recorded when pydantic-ai reports them.
        """
        match result:
            case {"kind": "tool_return", "result": {"kind": "tool-return"}}:
                return
            case {"kind": "tool_return" | "tool_content_result", "result": content}:
                is_error = False
            case {"kind": "tool_failed", "message": content}:
                is_error = True
            case _:
                return
        for chunk in dispatch_chunks(call_id, name, content):
            self.write(chunk)
        self.write(self.result_chunk(call_id, name, content, is_error))
        self.written.counts["tool-result", call_id] += 1  # pydantic-ai reports it again

    def begin_segment(self, steps: int, calls: Iterable[str], changed: JSONMapping) -> None:
        super().begin_segment(steps, calls, changed)
        self.written.step_count += steps


def chunk_identity(chunk: StreamChunk) -> ChunkIdentity | None:
    """Return the identity of a chunk that a run writes once, or None for a piece of an answer."""
    kind = chunk["type"]
    if kind in CALL_TYPES:
        return kind, str(chunk["payload"]["toolCallId"])
    return (kind, "") if kind == "start" or kind in STEP_TYPES else None
