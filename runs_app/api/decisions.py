"""API views that decide about calls that wait for people, and answer with what the run does next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from django.core.exceptions import PermissionDenied
from django.db.models import Case, When
from django.http import HttpResponse, StreamingHttpResponse
from pydantic import BaseModel
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import ApiError, NotFound
from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.idempotency import idempotency_key, takes_idempotency_key
from agents_app.api.strict_requests import checking_names, warning_payloads
from agents_app.configuration.schema import ConfigError, Issue
from runs_app.api.approval_representation import approval_body
from runs_app.api.generate_response import answer_response
from runs_app.api.lookups import get_readable_call, get_run_of_agent
from runs_app.api.stream_responses import (
    EventStreamNegotiation,
    accepts_event_ids,
    requested_idle_time,
    stream_response,
)
from runs_app.approvals.decisions import FOREIGN_CALL, Decision, Verdict, decide_pending_call
from runs_app.approvals.errors import InvalidDecision, NotSuspended
from runs_app.approvals.lookup import find_call
from runs_app.approvals.repeated_requests import RequestKey, decision_key, find_call_of_key
from runs_app.engine.start.idempotency import idempotency_id
from runs_app.events import streams
from runs_app.events.decided_calls import chunks_after_decision, suspension_number
from runs_app.events.network import NetworkConverter
from runs_app.models import AgentRun, PendingCall
from runs_app.requests.decisions import (
    SENT_WITH_DECISIONS,
    CallBody,
    DecisionBody,
    ResumeBody,
    ThreadDecisionBody,
    parse_decision_body,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User

UNFIT_DECISION_STATUS = 422
MAX_RUNS_OF_THREAD = 20  # the latest that wait, then the latest others, in which `send-tool-approval` looks for a call


class StoredDecision(NamedTuple):
    """A decision that was stored, and unknown names of its request. The run goes on after the event `after`."""

    run: AgentRun
    call: PendingCall
    after: int
    unknown: Sequence[UnknownName] = ()


def read_decision_request(request: Request, model: type[BaseModel]) -> tuple[JSONObject, Sequence[UnknownName]]:
    """Return the fields of a decision, and the unknown names of the request. Raise BadRequest and ConfigError."""
    body = json_object_body(request)
    fields: JSONObject = {}
    with checking_names(request, body, model, silent=SENT_WITH_DECISIONS) as names:
        fields = parse_decision_body(model, body)
    return fields, names.unknown


class DecisionView(JSONView):
    """A decision about a call of a run, which the body names."""

    verdict = Verdict.APPROVE

    def decide(self, request: Request, agent_id: str) -> StoredDecision:
        body, unknown = read_decision_request(request, CallBody)
        decision = Decision(self.verdict, body.get("reason") or "", body.get("arguments"))
        return decide_call_of_run(request, agent_id, body, lambda call: decision)._replace(unknown=unknown)


class StreamedDecisionView(DecisionView):
    """A decision whose response streams what the run does next."""

    is_network = False  # whether the response has the chunks of a network
    is_until_idle = False  # whether the stream goes on until the background tasks of the run have ended
    content_negotiation_class = EventStreamNegotiation

    @takes_idempotency_key
    def post(self, request: Request, agent_id: str) -> StreamingHttpResponse:
        slot = streams.StreamSlot(request.user)  # acquired first, so that no decision lacks its response
        try:
            max_idle_ms = requested_idle_time(request, is_route=self.is_until_idle)
            return decision_stream(request, self.decide(request, agent_id), slot, self.is_network, max_idle_ms)
        except BaseException:  # no response will release the slot
            slot.release()
            raise


class GeneratedDecisionView(DecisionView):
    """A decision whose response is the whole answer, as that of `generate`."""

    @takes_idempotency_key
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        with streams.StreamSlot(request.user):
            decided = self.decide(request, agent_id)
            return answer_response(request.user, decided.run.pk, agent_id, decided.unknown)


class ApproveView(StreamedDecisionView):
    """Approval of a call."""


class DeclineView(StreamedDecisionView):
    """Refusal of a call. The model reads the reason."""

    verdict = Verdict.DECLINE


class ResumeView(StreamedDecisionView):
    """Data for a tool that has suspended itself, or `{"approved": true}` for a call that waits for approval."""

    def decide(self, request: Request, agent_id: str) -> StoredDecision:
        body, _ = read_decision_request(request, ResumeBody)
        return decide_call_of_run(request, agent_id, body, lambda call: decision_from_data(call, body["resume_data"]))


class ResumeUntilIdleView(ResumeView):
    """Data for a tool, with a stream that stays open until the background tasks of the run have ended."""

    is_until_idle = True


class ApproveGenerateView(GeneratedDecisionView):
    """Approval of a call."""


class DeclineGenerateView(GeneratedDecisionView):
    """Refusal of a call. The model reads the reason."""

    verdict = Verdict.DECLINE


class ApproveNetworkView(ApproveView):
    """Approval of the only waiting call of a network."""

    is_network = True


class DeclineNetworkView(DeclineView):
    """Refusal of the only waiting call of a network."""

    is_network = True


class ResumeNetworkView(ResumeView):
    """Data for the only waiting call of a network."""

    is_network = True


class SendToolApprovalView(JSONView):
    """A decision about a call by its conversation. The response does not wait for the run."""

    @takes_idempotency_key
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        body, unknown = read_decision_request(request, ThreadDecisionBody)
        key = requested_key(request)
        call = find_call_of_repeat(key) or find_call_in_thread(request, agent_id, body)
        decide_for_caller(call, thread_decision(call, body), request, key)
        accepted = {"accepted": True, "runId": call.root_id, "toolCallId": body["tool_call_id"]}
        return json_response(accepted | warning_payloads(unknown))


class ApprovalView(JSONView):
    """One call that waits for a person or was decided, and the decision about it."""

    def get(self, request: Request, approval_id: str) -> HttpResponse:
        return json_response(approval_body(get_readable_call(request, approval_id)))

    def post(self, request: Request, approval_id: str) -> HttpResponse:
        body, unknown = read_decision_request(request, DecisionBody)
        if body["decision"] not in Verdict.values:
            raise ConfigError([Issue("decision", f"Send one of {', '.join(Verdict.values)}.")])
        call = get_readable_call(request, approval_id)
        decision = Decision(
            Verdict(body["decision"]),
            body.get("reason") or "",
            body.get("arguments"),
            body.get("resume_data"),
            body.get("mark") or "",
        )
        return json_response(approval_body(decide_for_caller(call, decision, request)) | warning_payloads(unknown))


def decide_call_of_run(
    request: Request, agent_id: str, body: JSONObject, decision_for: Callable[[PendingCall], Decision]
) -> StoredDecision:
    """Decide the call that a body names by `runId` and `toolCallId`."""
    run = get_run_of_agent(request, agent_id, body["run_id"])
    key = requested_key(request)
    call = find_call_of_repeat(key) or find_visible_call(request, run, body.get("tool_call_id") or None)
    # Before the decision, after which the run goes on and adds events.
    after = suspension_number(run, call)
    decision = replace(decision_for(call), mark=body.get("mark") or "")
    return StoredDecision(run, decide_for_caller(call, decision, request, key), after)


def requested_key(request: Request) -> RequestKey | None:
    """Return the `Idempotency-Key` of a decision, or None if it has none."""
    key = idempotency_key(request)
    user = cast("User", request.user)  # the permission classes refuse anonymous callers
    body = json_object_body(request)
    return None if key is None else decision_key(idempotency_id(user, key), request.path, body)


def find_call_of_repeat(key: RequestKey | None) -> PendingCall | None:
    """Return the call that a request with this key has decided, or None."""
    return None if key is None else find_call_of_key(key)


def find_visible_call(request: Request, run: AgentRun, call_id: str | None) -> PendingCall:
    """Return the call of a run that an ID names. Raise NotSuspended without one.

    Raise PermissionDenied for former members, whether there is such a call or not. They see no calls.
    """
    if not run.details_visible_to(request.user):
        raise PermissionDenied(FOREIGN_CALL)
    return find_call(run, call_id)


def decide_for_caller(
    call: PendingCall, decision: Decision, request: Request, key: RequestKey | None = None
) -> PendingCall:
    """Store a decision of the caller. Raise a 422 with the paths of what does not fit the call."""
    try:
        return decide_pending_call(call, decision, request.user, PendingCall.Via.API, key)
    except InvalidDecision as error:
        message = "The decision does not fit the call."
        raise ApiError(UNFIT_DECISION_STATUS, message, "invalid_decision", error.issues) from None


def decision_from_data(call: PendingCall, data: object) -> Decision:
    """Return the decision that resume data mean. For a call that waits for approval, `approved` decides."""
    if call.kind != PendingCall.Kind.APPROVAL:
        return Decision(Verdict.RESUME, resume_data=data)
    approved = data.get("approved") if isinstance(data, dict) else None
    reason = data.get("reason") if isinstance(data, dict) else None
    if not isinstance(approved, bool) or not isinstance(reason, str | None):
        message = "This call waits for approval. Send true or false, and the reason as a text."
        raise ApiError(
            UNFIT_DECISION_STATUS,
            "The decision does not fit the call.",
            "invalid_decision",
            [("resumeData.approved", message)],
        )
    return Decision(Verdict.APPROVE if approved else Verdict.DECLINE, reason or "")


def thread_decision(call: PendingCall, body: JSONObject) -> Decision:
    """Return the decision of a body with `approved` and, for a tool that waits for data, `resumeData`."""
    verdict, data = Verdict.APPROVE, None
    if not body["approved"]:
        verdict = Verdict.DECLINE
    elif call.kind == PendingCall.Kind.SUSPEND:
        verdict, data = Verdict.RESUME, body.get("resume_data")
    return Decision(verdict, body.get("reason") or "", resume_data=data, mark=body.get("mark") or "")


def find_call_in_thread(request: Request, agent_id: str, body: JSONObject) -> PendingCall:
    """Return the call that an ID names in the runs of a conversation, the waiting ones first. Raise NotFound.

    Other users may give their conversations the same names, and some servers number the calls of each answer: the
    runs of the caller come before those that it may only read by its role.
    """
    runs = AgentRun.objects.for_user(request.user).filter(
        agent_key=agent_id, parent=None, thread__key=body["thread_id"], thread__resource_key=body["resource_id"]
    )
    runs = runs.with_roles(request.user)
    order = Case(When(status=AgentRun.Status.SUSPENDED, then=0), default=1)
    own_first = Case(When(requested_by=request.user.pk, then=0), default=1)
    waiting_first = [*runs.without_large_columns().order_by(order, own_first, "-created_at")[:MAX_RUNS_OF_THREAD]]
    if not waiting_first:
        raise NotFound(f"Thread with id {body['thread_id']} not found for this resource.")
    for run in waiting_first:
        try:
            return find_visible_call(request, run, body["tool_call_id"])
        except NotSuspended:
            continue
    raise NotSuspended


def decision_stream(
    request: Request, decided: StoredDecision, slot: streams.StreamSlot, is_network: bool, max_idle_ms: int | None
) -> StreamingHttpResponse:
    """Return a stream of what a run does after a decision."""
    run = decided.run
    return stream_response(
        run.pk,
        decided.after,
        slot,
        numbered=accepts_event_ids(request),
        redacted=not run.details_visible_to(request.user),
        first_chunks=chunks_after_decision(run, decided.call),
        convert=NetworkConverter(run, decided.after).convert if is_network else None,
        max_idle_ms=max_idle_ms,
    )
