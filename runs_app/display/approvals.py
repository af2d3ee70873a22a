"""Calls that wait for people, and decided ones, for display on pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import F, Q
from django.utils import timezone

from access_app.caller import Caller
from access_app.role import Role, RoleRequired
from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping
from runs_app.display.answer import input_messages
from runs_app.display.formats import format_duration
from runs_app.display.transcript import TextPart, ToolCallPart, Transcript, value_as_text
from runs_app.models import AgentRun, PendingCall, RunEvent
from runs_app.models.run_configuration import preload_configurations

MAX_EVENTS = 400  # the newest of a run, in which the words before a call are looked for
MAX_WORDS = 600  # characters, the last of the words before a call
SECOND_PERSON_MESSAGE = "Somebody else has to decide, because you started this run."
EXPIRES_SOON = timedelta(hours=24)
OPTION_EFFECTS = {
    "allow_once": "allows this once",
    "allow_always": "always allows this",
    "reject_once": "rejects this once",
    "reject_always": "always rejects this",
}


class Argument(NamedTuple):
    """An argument of a call, as text. `previous` is the text before somebody edited it."""

    name: str
    text: str
    is_code: bool
    previous: str | None = None


class PermissionOption(NamedTuple):
    """An answer to a request for permission."""

    id: str
    name: str
    kind: str

    @property
    def allows(self) -> bool:
        return self.kind.startswith("allow")

    @property
    def effect(self) -> str:
        """The effect of the answer. Its name is the agent's, and may say something else."""
        return OPTION_EFFECTS.get(self.kind, self.kind)


class PermissionView(NamedTuple):
    """A request for permission, which people answer by one of its options."""

    title: str
    paths: list[str]
    changes: list[Argument]
    options: list[PermissionOption]

    @classmethod
    def from_request(cls, request: JSONMapping) -> PermissionView:
        change = request.get("change")
        changes = describe_arguments(change) if isinstance(change, dict) else describe_arguments({"change": change})
        return cls(
            str(request.get("title", "")),
            [str(path) for path in request.get("paths") or []],
            [item._replace(is_code=True) for item in changes] if change else [],
            [
                PermissionOption(str(option["optionId"]), str(option["name"]), str(option["kind"]))
                for option in request.get("options") or []
            ],
        )


@dataclass
class PendingCallView:
    """A call with what a person needs to decide it."""

    call: PendingCall
    run: AgentRun | None = None  # None if it was deleted
    root: AgentRun | None = None  # the run that a person or a program asked for
    words: str = ""  # of the answer before the call
    may_decide: bool = False
    obstacle: str = ""  # why the reader may not decide
    schema: JSONMapping | None = None  # of the arguments, or of the data that a tool waits for

    @property
    def part(self) -> ToolCallPart:
        return ToolCallPart(self.call.call_id, self.call.tool)

    @property
    def title(self) -> str:
        return self.part.title

    @property
    def is_question(self) -> bool:
        """True if the tool asks for data, and not for permission."""
        return self.call.kind == PendingCall.Kind.SUSPEND

    @property
    def agent_name(self) -> str:
        name: str = (self.run is not None and self.run.configuration.get("name")) or self.call.agent_key
        return name

    @property
    def question(self) -> str:
        """The last message of the user."""
        run = self.root or self.run
        messages = input_messages(run) if run else []
        texts = [message["text"] for message in messages if message["role"] == "user"]
        return texts[-1] if texts else ""

    @property
    def arguments(self) -> list[Argument]:
        """The arguments of the call. Edited ones have the text before too."""
        return describe_arguments(self.call.arguments, self.call.edited_arguments)

    @property
    def permission(self) -> PermissionView | None:
        """The request of an agent outside of this application for a permission."""
        payload = self.call.payload
        request = payload.get("permissionRequest") if isinstance(payload, dict) else None
        return PermissionView.from_request(request) if isinstance(request, dict) and self.is_question else None

    @property
    def payload(self) -> list[Argument]:
        """The words of a tool that has suspended itself."""
        payload = self.call.payload
        return describe_arguments(payload if isinstance(payload, dict) else {"message": payload}) if payload else []

    @property
    def answers(self) -> list[Argument]:
        """The data with which a person answered a question."""
        data = self.call.resume_data
        return describe_arguments(data if isinstance(data, dict) else {"answer": data}) if data is not None else []

    @property
    def waited(self) -> str:
        """The time from the call to the decision, or to now."""
        return format_duration((self.call.decided_at or timezone.now()) - self.call.created_at)

    @property
    def time_left(self) -> str:
        expires_at = self.call.expires_at
        return format_duration(expires_at - timezone.now()) if expires_at and expires_at > timezone.now() else ""

    @property
    def expires_soon(self) -> bool:
        return self.call.expires_at is not None and self.call.expires_at - timezone.now() < EXPIRES_SOON


def describe_arguments(arguments: object, edited: object = None) -> list[Argument]:
    """Return arguments with their texts, in their order."""
    if not isinstance(arguments, dict):
        return [Argument("value", value_as_text(arguments), is_code=True)] if arguments is not None else []
    if not isinstance(edited, dict):
        return [describe_argument(name, value) for name, value in arguments.items()]
    names = dict.fromkeys([*arguments, *edited])
    return [
        describe_argument(name, edited.get(name))._replace(
            # Not ==, by which 1 is true.
            previous=None if json_equal(edited.get(name), arguments.get(name)) else argument_text(arguments.get(name))
        )
        for name in names
    ]


def describe_argument(name: str, value: object) -> Argument:
    return Argument(name, argument_text(value), is_code=isinstance(value, dict | list))


def argument_text(value: object) -> str:
    """Return a value as text, for people: `yes` and not `true`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "(not set)" if value is None else value_as_text(value) or "(empty)"


def build_approval_views(
    calls: Iterable[PendingCall], user: Caller, *, with_words: bool = True
) -> list[PendingCallView]:
    """Return views of calls for a user, in four queries. `with_words` reads what the agents said before the calls."""
    calls = list(calls)
    runs = load_runs(calls, user)
    decidable = {*PendingCall.objects.decidable_by(user).filter(pk__in=[call.pk for call in calls]).values_list("pk")}
    words = words_before(calls) if with_words else {}
    return [
        build_approval_view(call, runs, words.get(call.pk, ""), user, may_decide=(call.pk,) in decidable)
        for call in calls
    ]


def build_approval_view(
    call: PendingCall, runs: Mapping[UUID, Any], words: str, user: Caller, *, may_decide: bool
) -> PendingCallView:
    run = runs.get(call.run_id) if call.run_id else None
    root = runs.get(call.root_id)
    obstacle = "" if may_decide or not call.is_open else find_obstacle(call, user)
    schema = call.resume_schema if call.kind == PendingCall.Kind.SUSPEND else call.arguments_schema
    return PendingCallView(call, run, root, words, may_decide, obstacle, schema)


def find_obstacle(call: PendingCall, user: Caller) -> str:
    """Return why a user may not decide a waiting call."""
    if call.four_eyes and call.requested_by_id == user.pk:
        return SECOND_PERSON_MESSAGE
    return str(RoleRequired(Role(call.role), call.owner_id))


def load_runs(calls: Sequence[PendingCall], user: Caller) -> dict[UUID, AgentRun]:
    """Return the runs of calls and those that people asked for, with the names of their agents."""
    ids = {run_id for call in calls for run_id in (call.run_id, call.root_id) if run_id}
    runs = AgentRun.objects.for_user(user).filter(pk__in=ids).defer("conversation", "output", "warnings").in_bulk()
    preload_configurations(run.shared_configuration_id for run in runs.values())
    return runs


def words_before(calls: Sequence[PendingCall]) -> dict[UUID, str]:
    """Return the words of the answer right before each call, by the ID of the call."""
    tail = Q(number__gt=F("run__last_event_number") - MAX_EVENTS)
    events = RunEvent.objects.filter(tail, run__in={call.run_id for call in calls}).order_by("run_id", "number")
    events = events.exclude(type=RunEvent.Type.TOOL_RESULT)  # which may have 200 kB each
    transcripts: dict[UUID, Transcript] = {}
    for event in events:
        transcripts.setdefault(event.run_id, Transcript()).add(event)
    return {call.pk: text_before(transcripts[call.run_id], call) for call in calls if call.run_id in transcripts}


def text_before(transcript: Transcript, call: PendingCall) -> str:
    """Return the last text of a transcript before a call, or before other calls of the same step."""
    parts = transcript.visible_parts
    position = next((i for i, part in enumerate(parts) if getattr(part, "stored_id", "") == call.call_id), len(parts))
    while position and isinstance(parts[position - 1], ToolCallPart):
        position -= 1
    previous = parts[position - 1] if position else None
    if not isinstance(previous, TextPart) or previous.kind != "text":
        return ""
    text = previous.text.strip()
    return text if len(text) <= MAX_WORDS else f"… {text[-MAX_WORDS:]}"
