"""The state of a run while a process executes it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack
from uuid import UUID

from pydantic_ai.run import AgentRun as ModelRun

from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.configuration.references import MissingReference
from runs_app.approvals.segments import Segment
from runs_app.engine.context import RunDeps
from runs_app.engine.journaling.journal import Journal
from runs_app.events.durable_recorder import DurableRecorder, WrittenEvents
from runs_app.events.pending_runs import RunEnd
from runs_app.events.recorder import Recorder, usage_payload
from runs_app.events.stream_chunks import StreamChunk, to_storable_json

if TYPE_CHECKING:
    from runs_app.building.agent import BuiltAgent
    from runs_app.engine.engine import Engine
    from runs_app.engine.sub_runs import ExecuteRun


class PreparedRun(NamedTuple):
    """The agent of a run and its dependencies."""

    built: BuiltAgent
    deps: RunDeps


@dataclass
class RunExecution:
    """State of a run while it executes. `columns` are the values that its end writes to the row."""

    engine: Engine
    run_id: UUID
    execute_child: ExecuteRun  # executes the runs of its sub-agents
    is_durable: bool = False
    model: str = "The model"
    model_run: ModelRun[RunDeps, Any] | None = None
    columns: RunEnd = field(default_factory=RunEnd)
    answer: JSONValue = None  # an object of structured output
    segment: Segment = field(default_factory=Segment)
    prepared: PreparedRun | None = None
    journal: Journal | None = None  # of a durable run
    parent_journal: Journal | None = None
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.recorder = Recorder(partial(self.engine.writer.add, self.run_id), str(self.run_id))

    def start_journal(self, segment: int, written: WrittenEvents) -> Journal:
        """Journal the steps of the run from now on, and write no event twice."""
        writer = self.engine.writer
        recorder = DurableRecorder(partial(writer.add, self.run_id), str(self.run_id), written)
        self.recorder = recorder
        self.journal = Journal(self.run_id, segment, writer, recorder)
        return self.journal

    @property
    def is_interrupted(self) -> bool:
        """Return whether a process continues the run later, because this one, the run or its parent stops."""
        parent_stops = self.parent_journal is not None and (
            self.parent_journal.is_lost or self.parent_journal.is_stopping
        )
        stops = self.journal is not None and self.journal.is_stopping
        return self.is_durable and (self.engine.is_stopping or stops or parent_stops)

    @property
    def is_lost(self) -> bool:
        """Return whether another process has claimed the run."""
        return self.journal is not None and self.journal.is_lost

    @property
    def worked_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)

    @property
    def usage(self) -> JSONObject:
        """The tokens used so far, under wire names."""
        return usage_payload(self.model_run.usage) if self.model_run else {}

    @property
    def memory_columns(self) -> RunEnd:
        """The memory that the model was given, and the warnings of its capabilities."""
        if self.prepared is None:
            return {}
        deps, warnings = self.prepared.deps, self.columns.get("warnings", [])
        return {
            "remembered": deps.remembered or None,
            "warnings": joined_warnings(warnings, deps.warnings),
        }

    def close(self, last: StreamChunk, **columns: Unpack[RunEnd]) -> Awaitable[bool]:
        """Write the last chunk and the end of the run. The result is False if another process owns the run."""
        figures: RunEnd = {"usage": self.usage, "cost": self.model_run.usage.cost} if self.model_run else {}
        text = to_storable_json(self.recorder.text)
        self.columns = {"output": text, **self.columns, **self.memory_columns, **figures, **columns}
        with self.engine.writer.one_commit():
            self.recorder.add(last)
            written = self.engine.writer.close(self.run_id, **self.columns)
        return asyncio.wrap_future(written)


def joined_warnings(known: list[dict[str, str]], added: Iterable[MissingReference]) -> list[dict[str, str]]:
    """Return warnings of a run with those that are new. Each segment of a run has the same ones of its agent."""
    new = [warning._asdict() for warning in added]
    return [*known, *(warning for warning in new if warning not in known)]
