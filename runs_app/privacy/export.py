"""Export of all data of a resource as JSON lines: its memory, threads, messages and runs."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import F, Model, QuerySet

from access_app.caller import Caller
from access_app.permissions import has_role_everywhere, owner_ids_for
from access_app.role import Role
from memory_app.models import Message, Observation, Participant, Resource, Thread, Vector, WorkingRevision
from runs_app.models import AgentRun, BackgroundTask, PendingCall, RunEvent, RunStep, Score
from runs_app.privacy.forgetting import ROWS_PER_BATCH
from runs_app.runs_of_resources import calls_of, in_any, runs_of

RUNS_PER_BATCH = 100  # whose events are read with one query

_added: list[ExportedRows] = []  # by other applications


class ExportedRows(NamedTuple):
    """The rows of a model in an export: the type of their lines, and the columns that these have.

    A path such as `message__key` is called `message` in a line.
    """

    line_type: str
    model: type[Model]
    order: Sequence[str]
    columns: Sequence[str]

    def lines(self, rows: QuerySet[Any], **values: Any) -> Iterator[str]:
        """Yield a line for each row. `values` are added to each."""
        names = [path.partition("__")[0] for path in self.columns]
        for row in rows.order_by(*self.order).values_list(*self.columns).iterator(ROWS_PER_BATCH):
            columns = {name: to_json(value) for name, value in zip(names, row, strict=True)}
            line = {"type": self.line_type, **values, **columns}
            yield json.dumps(line, ensure_ascii=False, cls=DjangoJSONEncoder)


@dataclass
class Reader:
    """The user who reads an export, and the owners of the rows in it that need a role for their owner."""

    user: Caller
    owner_ids: set[str] = field(default_factory=set)

    def readable(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Filter to the rows for whose owner the user has a role, and note these owners."""
        if not has_role_everywhere(self.user, Role.VIEWER):
            rows = rows.filter(owner_id__in=owner_ids_for(self.user))
        self.owner_ids.update(rows.order_by().values_list("owner_id", flat=True).distinct())
        return rows


RESOURCE = ExportedRows("resource", Resource, ["pk"], ["realm", "key", "working_memory", "created_at", "updated_at"])
REVISION_COLUMNS = ["revision", "value", "run_id", "user__username", "created_at"]
REVISION = ExportedRows("workingRevision", WorkingRevision, ["revision"], REVISION_COLUMNS)
THREAD_COLUMNS = ["key", "title", "metadata", "agent_key", "parent__key", "user__username", "working_memory"]
THREAD = ExportedRows("thread", Thread, ["pk"], [*THREAD_COLUMNS, "created_at", "updated_at"])
# The arguments and the result of a call of a tool are events, or they are in the call that waited for people.
CALL_COLUMNS = ["id", "run_id", "root_id", "call_id", "agent_key", "tool", "arguments", "kind", "payload", "state"]
DECISION_COLUMNS = ["decided_by_name", "decided_at", "reason", "edited_arguments", "resume_data"]
APPROVAL = ExportedRows(
    "approval",
    PendingCall,
    ["created_at", "id"],
    [*CALL_COLUMNS, "requested_by_name", *DECISION_COLUMNS, "created_at", "expires_at"],
)
# The request context and the facts are parts of the input.
ANSWER_COLUMNS = ["input", "conversation", "output", "status", "finish_reason", "error", "warnings", "remembered"]
RUN = ExportedRows(
    "run",
    AgentRun,
    ["pk"],
    [
        *("id", "parent_id", "thread__key", "agent_key", "version_number", "requested_by_name"),
        *(*ANSWER_COLUMNS, "usage", "cost", "created_at", "started_at", "finished_at"),
    ],
)
RUN_OF_FORMER_MEMBER = ExportedRows(
    "run",
    AgentRun,
    ["pk"],
    [
        *("id", "thread__key", "agent_key", "version_number", "requested_by_name"),
        *("messages", "options", "request_context", "output", "status", "finish_reason"),
        *("usage", "cost", "created_at", "started_at", "finished_at"),
    ],
)
PARTS_OF_THREAD = [
    ExportedRows("participant", Participant, ["pk"], ["user__username", "name", "functional_role", "created_at"]),
    REVISION,
    ExportedRows(
        "message",
        Message,
        ["number"],
        [
            *("key", "number", "role", "text", "data", "author_name", "attributes"),
            *("run_id", "seen_by", "delivery", "created_at"),
        ],
    ),
    ExportedRows(
        "observation",
        Observation,
        ["generation", "first"],
        ["generation", "first", "last", "is_active", "text", "model", "usage", "created_at"],
    ),
    ExportedRows(
        "vector", Vector, ["message", "part"], ["message__key", "part", "embedder", "scale", "data", "created_at"]
    ),
]
PARTS_OF_RUN = [
    ExportedRows("runEvent", RunEvent, ["run_id", "number"], ["run_id", "number", "data", "created_at"]),
    ExportedRows(
        "runStep",
        RunStep,
        ["run_id", "started_at", "key"],
        ["run_id", "key", "kind", "name", "state", "result", "started_at", "finished_at"],
    ),
    ExportedRows(
        "backgroundTask",
        BackgroundTask,
        ["created_at", "id"],
        [
            *("id", "run_id", "call_id", "tool", "arguments", "status", "result", "error", "progress"),
            *("created_at", "finished_at"),
        ],
    ),
    ExportedRows(
        "score",
        Score,
        ["run_id", "pk"],
        ["run_id", "scorer", "score", "label", "reason", "error", "details", "result", "source", "created_at"],
    ),
]


def add_to_export(*rows: ExportedRows) -> None:
    """Add rows of another application to exports. Their model has the column `thread` or `run`."""
    _added.extend(item for item in rows if item not in _added)


def added_parts(column: str) -> list[ExportedRows]:
    """Return the rows of other applications that hang on a thread or a run."""
    return [rows for rows in _added if column in {field.name for field in rows.model._meta.fields}]


def to_json(value: object) -> object:
    """Return a value of a column as JSON has it: bytes as base64."""
    return b64encode(value).decode() if isinstance(value, bytes | memoryview) else value


def resource_lines(realm: str, key: str, reader: Reader | None = None) -> Iterator[str]:
    """Yield all data of a resource as JSON lines.

    A reader gets only what was sent and the answer of a run if they have no role for its owner, as in the API.
    """
    resources = Resource.objects.filter(realm=realm, key=key)
    yield from RESOURCE.lines(resources)
    yield from REVISION.lines(WorkingRevision.objects.filter(resource__in=resources))
    for thread in Thread.objects.filter(realm=realm, resource_key=key).order_by("pk").iterator():
        yield from THREAD.lines(Thread.objects.filter(pk=thread.pk))
        for part in (*PARTS_OF_THREAD, *added_parts("thread")):
            yield from part.lines(part.model._default_manager.filter(thread=thread), thread=thread.key)
    for run_ids in batches_of_runs(realm, key):
        yield from run_lines(run_ids, reader)
    yield from APPROVAL.lines(readable(calls_of(realm, key), reader))


def run_lines(run_ids: Iterable[UUID], reader: Reader | None) -> Iterator[str]:
    """Yield runs with all that belongs to them, as far as the reader may read it."""
    runs: QuerySet[Any] = AgentRun.objects.filter(pk__in=run_ids)
    whole = [*readable(runs, reader).values_list("pk", flat=True)]
    yield from RUN.lines(runs.filter(pk__in=whole))
    # Child runs show how the agents of a team work.
    others = runs.exclude(pk__in=whole).filter(parent=None)
    sent = {
        "messages": F("input__messages"),
        "options": F("input__options"),
        "request_context": F("input__requestContext"),
    }
    yield from RUN_OF_FORMER_MEMBER.lines(others.annotate(**sent))
    for part in (*PARTS_OF_RUN, *added_parts("run")):
        yield from part.lines(part.model._default_manager.filter(run__in=whole))


def readable(rows: QuerySet[Any], reader: Reader | None) -> QuerySet[Any]:
    """Filter to the rows that the reader may read. Without a reader, all remain."""
    return rows if reader is None else reader.readable(rows)


def batches_of_runs(realm: str, key: str) -> Iterator[list[UUID]]:
    """Yield the IDs of the runs of a resource and of their child runs, in batches."""
    own = runs_of(realm, key).order_by().values("pk")
    families = in_any(AgentRun, AgentRun.objects.filter(pk__in=own), AgentRun.objects.filter(root_id__in=own))
    runs = families.order_by("pk").values_list("pk", flat=True)
    batch = [*runs[:RUNS_PER_BATCH]]
    while batch:
        yield batch
        batch = [*runs.filter(pk__gt=batch[-1])[:RUNS_PER_BATCH]]
