"""Requests of ACP agents for permission, and the decisions about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from agentcms.db.locks import lock_referenced_rows
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONObject, JSONValue
from runs_app.events.stream_chunks import truncate_value
from runs_app.models import AgentRun, PendingCall
from runs_app.models.pending_call import stored_call_id
from tools_app.models import AcpAgent, AcpPermission

PERMISSION = "permissionRequest"  # in the payload of a call that waits for a person
READ_KINDS = ("read", "search")
ALWAYS = ("allow_always", "reject_always")
CANNOT_ASK_MESSAGE = "Nobody can be asked: the run is not durable. The request was rejected."
DEFAULT_OPTIONS = (("allow", "Allow", "allow_once"), ("reject", "Reject", "reject_once"))

PermissionPolicy = AcpAgent.Permissions


class PermissionAnswer(NamedTuple):
    """An answer that a person can choose. `kind` is allow_once, allow_always, reject_once or reject_always."""

    id: str
    name: str
    kind: str


class ChosenOption(NamedTuple):
    """The option of a request that a person chose, or blanks for none."""

    id: str = ""
    kind: str = ""


@dataclass(frozen=True)
class PermissionRequest:
    """A request of an agent for a permission. Equal requests have equal marks."""

    title: str
    kind: str
    paths: tuple[str, ...]
    options: tuple[PermissionAnswer, ...]
    change: JSONValue = None  # what the agent says that it will write or run

    @property
    def mark(self) -> str:
        """The hash of the kind, title and paths, and of the content."""
        return sha256_hex(canonical([self.kind, self.title, sorted(self.paths), self.change]))

    @property
    def body(self) -> JSONObject:
        """The request as people read it."""
        return {
            "title": self.title,
            "options": [{"optionId": item.id, "name": item.name, "kind": item.kind} for item in self.options],
            "toolKind": self.kind,
            "paths": list(self.paths),
            "change": truncate_value(self.change),
            "mark": self.mark,
        }

    def payload(self, agent: str) -> JSONObject:
        """Return the payload of the call that waits. `agent` is the key of the ACP agent."""
        return {PERMISSION: {**self.body, "agent": agent}}

    @property
    def resume_schema(self) -> JSONObject:
        """The JSON Schema of the answer."""
        option = {"enum": [item.id for item in self.options], "title": "Option"}
        return {
            "type": "object",
            "properties": {"outcome": {"enum": ["selected", "cancelled"], "title": "Outcome"}, "optionId": option},
            "required": ["outcome"],
            "additionalProperties": False,
            "if": {"properties": {"outcome": {"const": "selected"}}},
            "then": {"required": ["optionId"]},
        }

    def first_option(self, *kinds: str) -> str:
        """Return the ID of the first option of one of these kinds, or a blank text."""
        return next((item.id for item in self.options if item.kind in kinds), "")

    def option_kind(self, option_id: str) -> str:
        return next((item.kind for item in self.options if item.id == option_id), "")

    def option_like(self, chosen: ChosenOption) -> str:
        """Return the ID of the option that a person chose, or of one of its kind, or a blank text.

        The same request may come again with other options: the ID of a refusal must not allow anything then.
        """
        return chosen.id if self.option_kind(chosen.id) == chosen.kind else self.first_option(chosen.kind)


@dataclass
class Decisions:
    """The answers to the requests of one prompt.

    `answers` are the options that people chose for this call, by the mark of the request. Each is given once in a
    prompt. `always` are the kinds of the answers for the whole conversation.
    """

    policy: str
    can_ask: bool
    answers: dict[str, ChosenOption] = field(default_factory=dict)
    always: Mapping[str, str] = field(default_factory=dict)

    def answer(self, request: PermissionRequest) -> str | None:
        """Return the ID of the chosen option, blank for none, or None if a person must be asked."""
        reject = request.first_option("reject_once", "reject_always")
        if self.policy == PermissionPolicy.REJECT:
            return reject
        # Before the policies that allow something: one may have been chosen while the request waited for a person.
        if request.mark in self.answers:
            return request.option_like(self.answers.pop(request.mark))
        if (kind := self.always.get(request.mark)) is not None:
            side = kind.partition("_")[0]
            return request.first_option(f"{side}_once", f"{side}_always")
        if self.policy == PermissionPolicy.FIRST_OPTION:
            return request.options[0].id if request.options else ""
        if self.policy == PermissionPolicy.ALLOW_READS and request.kind in READ_KINDS:
            return request.first_option("allow_once", "allow_always")
        return None if self.can_ask else reject


def allows_request(request: PermissionRequest, option_id: str | None) -> bool:
    """Return whether the answer to a request allows it."""
    return bool(option_id) and request.option_kind(option_id or "").startswith("allow")


def write_request(path: str, content: str) -> PermissionRequest:
    """Return the request for a file that the agent writes without having asked."""
    return PermissionRequest(
        f"Write {path}",
        "edit",
        (path,),
        tuple(PermissionAnswer(*option) for option in DEFAULT_OPTIONS),
        {path: content},
    )


# --- Stored decisions


def load_permission_answers(run_id: UUID, call_id: str) -> dict[str, ChosenOption]:
    """Return the chosen options by the mark of the request: of one call of a run, or of all of them."""
    calls = PendingCall.objects.filter(run=run_id, kind=PendingCall.Kind.SUSPEND).exclude(
        state__in=(PendingCall.State.OPEN, PendingCall.State.CANCELLED)
    )
    if call_id:
        calls = calls.filter(call_id=stored_call_id(call_id))
    # Of several answers to equal requests, the latest counts.
    return dict(read_answers(calls.order_by("segment", "created_at")))


def read_answers(calls: Iterable[PendingCall]) -> Iterable[tuple[str, ChosenOption]]:
    """Yield the mark and the chosen option of each decided request."""
    for call in calls:
        request = call.payload.get(PERMISSION) if isinstance(call.payload, dict) else None
        if isinstance(request, dict):
            yield str(request.get("mark")), chosen_option(call, request)


def chosen_option(call: PendingCall, request: JSONObject) -> ChosenOption:
    """Return what a person chose of the options of a request, with the kind that it had then."""
    data = call.resume_data if isinstance(call.resume_data, dict) else {}
    if call.state == PendingCall.State.RESUMED and data.get("outcome") == "selected":
        for option in request.get("options") or []:
            if option["optionId"] == data.get("optionId"):
                return ChosenOption(option["optionId"], option["kind"])
    return ChosenOption()


def load_always(agent_id: int, owner_id: str, thread_id: int | None) -> dict[str, str]:
    """Return the answers of a conversation to equal requests of an agent that works for a team, by their mark."""
    if thread_id is None:
        return {}
    rows = AcpPermission.objects.filter(agent=agent_id, owner_id=owner_id, thread=thread_id)
    return dict(rows.values_list("mark", "option_kind"))


def thread_permissions(thread_id: int) -> QuerySet[AcpPermission]:
    """Return what people allowed or refused for a whole conversation, the latest first."""
    return AcpPermission.objects.filter(thread=thread_id).select_related("agent")


def remember_always(call: PendingCall) -> None:
    """Store the decision about a request for the whole conversation, if a person chose so.

    Call it in the transaction that stores the decision.
    """
    request = call.payload.get(PERMISSION) if isinstance(call.payload, dict) else None
    if not isinstance(request, dict) or call.state != PendingCall.State.RESUMED:
        return
    kind = chosen_option(call, request).kind
    agent = AcpAgent.objects.filter(key=request.get("agent")).first()
    # The first run has the conversation: the agent may work for a sub-agent.
    run = AgentRun.objects.only("thread_id", "owner_id").filter(pk=call.root_id).first()
    if kind not in ALWAYS or agent is None or run is None or run.thread_id is None:
        return
    columns = {"title": str(request["title"])[:200], "option_kind": kind, "decided_by_name": call.decided_by_name}
    mark = request["mark"]
    # The agent or the conversation may be deleted at the same time, which must not undo the decision.
    with suppress(IntegrityError), transaction.atomic():
        AcpPermission.objects.update_or_create(
            agent=agent, owner_id=run.owner_id, thread_id=run.thread_id, mark=mark, defaults=columns
        )
        lock_referenced_rows()
