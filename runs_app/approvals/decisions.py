"""Decisions about calls that wait for people: approve, decline, or send the data for which a tool has asked.

A decision is stored at once. The last one that a run waits for queues its next segment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.db.models.functions import Now

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONObject, JSONValue
from agentcms.wire.names import printable_key
from agentcms.wire.validation import find_json_faults
from agents_app.configuration.json_issues import issues_by_schema
from agents_app.configuration.schema import Issue
from runs_app.approvals.approval_signals import announce_call, approval_decided
from runs_app.approvals.errors import AlreadyDecided, ArgumentsChanged, CallExpired, InvalidDecision, NotSuspended
from runs_app.approvals.expiry import has_expired
from runs_app.approvals.repeated_requests import RequestKey, save_key
from runs_app.approvals.resuming import continue_if_decided
from runs_app.models import AgentRun, PendingCall

if TYPE_CHECKING:
    from django.contrib.auth.models import User

MAX_DECISION_REASON_LENGTH = 2000  # characters
FOREIGN_CALL = "You may not decide calls of this run."
DELETED_CALL = "This call was deleted with its run."


class Verdict(models.TextChoices):
    """The three ways to decide a call."""

    APPROVE = "approve", "Approve"
    DECLINE = "decline", "Decline"
    RESUME = "resume", "Answer"


STATE_BY_VERDICT = {
    Verdict.APPROVE: PendingCall.State.APPROVED,
    Verdict.DECLINE: PendingCall.State.DECLINED,
    Verdict.RESUME: PendingCall.State.RESUMED,
}


@dataclass(frozen=True)
class Decision:
    """A decision about one call.

    `arguments` replace those of an approved call. `resume_data` is what a suspended tool has asked for. `mark` is
    that of the call that the reader saw, or blank.
    """

    verdict: Verdict
    reason: str = ""
    arguments: JSONObject | None = None
    resume_data: JSONValue = None
    mark: str = ""


def decide_pending_call(
    call: PendingCall, decision: Decision, user: Caller, via: PendingCall.Via, key: RequestKey | None = None
) -> PendingCall:
    """Store a decision, and queue the next segment of the run if it was the last one that the run waited for.

    `key` is the idempotency key of the request, by which a repeated one finds the call. The same decision by the same
    user again returns the call. Raise PermissionDenied, AlreadyDecided, CallExpired,
    ArgumentsChanged, NotSuspended, or InvalidDecision with wire paths.
    """
    decider = cast("User", user)  # anonymous users have no role
    with transaction.atomic():
        # The row of the run is locked first, as everywhere. It keeps two decisions from both being the last one.
        runs = AgentRun.objects.select_for_update(of=("self",)).without_large_columns()
        run = runs.filter(pending_calls=call.pk).first()
        reload_call(call)
        # After the wait for the lock, in which the user may have left the team.
        reject_unauthorized(call, user)
        if not call.is_open:
            return repeated_decision(call, decision, decider)
        if run is None or run.status != AgentRun.Status.SUSPENDED or run.segment != call.segment:
            raise NotSuspended
        reject_unfit(call, decision)
        store_decision(call, decision, decider, via)
        if key is not None:
            save_key(call, key)
        continue_if_decided(run)
    return call


def reload_call(call: PendingCall) -> None:
    """Read a call again, whose run is locked now. Raise NotSuspended if it was deleted with the data of a resource."""
    try:
        call.refresh_from_db()
    except PendingCall.DoesNotExist:
        raise NotSuspended(DELETED_CALL) from None


def reject_unauthorized(call: PendingCall, user: Caller) -> None:
    """Raise PermissionDenied, which names the role, unless the user may decide the call."""
    if not PendingCall.objects.for_user(user).filter(pk=call.pk).exists():
        raise PermissionDenied(FOREIGN_CALL)
    require_role(user, Role(call.role), call.owner_id)
    if call.four_eyes and call.requested_by_id == user.pk:
        raise PermissionDenied("This call needs a second person: the person who started the run may not decide it.")


def repeated_decision(call: PendingCall, decision: Decision, user: User) -> PendingCall:
    """Return a decided call if this user decided it in the same way. Raise the error that says why not otherwise."""
    if call.state == PendingCall.State.EXPIRED:
        raise CallExpired(call)
    if call.state == PendingCall.State.CANCELLED:
        raise NotSuspended("This call waits no longer, because its run has ended.")
    is_same = (
        call.state == STATE_BY_VERDICT[decision.verdict]
        and call.decided_by_id == user.pk
        and call.reason == decision.reason
        and json_equal(call.edited_arguments, edited_arguments(call, decision))
        and json_equal(call.resume_data, decision.resume_data)
    )
    if not is_same:
        raise AlreadyDecided(call)
    return call


def edited_arguments(call: PendingCall, decision: Decision) -> JSONObject | None:
    """Return the arguments of a decision if they differ from those of the call."""
    is_edited = decision.arguments is not None and not json_equal(decision.arguments, call.arguments)
    return decision.arguments if is_edited else None


def reject_unfit(call: PendingCall, decision: Decision) -> None:
    """Raise the error of a decision that does not fit an open call."""
    if call.kind == PendingCall.Kind.CHILD:
        raise NotSuspended("This call waits for a sub-agent. Decide the call of the sub-agent.")
    if has_expired(call):
        raise CallExpired(call)
    if decision.mark and decision.mark != call.mark:
        raise ArgumentsChanged(call)
    if issues := [*decision_issues(call, decision)]:
        raise InvalidDecision(issues)


def decision_issues(call: PendingCall, decision: Decision) -> list[Issue]:
    """Return the issues of a decision about an open call."""
    issues = [Issue(fault.field, fault.message) for fault in find_json_faults(decision.reason, "reason")]
    if len(decision.reason) > MAX_DECISION_REASON_LENGTH:
        issues.append(Issue("reason", f"A reason has at most {MAX_DECISION_REASON_LENGTH} characters."))
    expected = {PendingCall.Kind.APPROVAL: Verdict.APPROVE, PendingCall.Kind.SUSPEND: Verdict.RESUME}[
        PendingCall.Kind(call.kind)
    ]
    if decision.verdict not in {expected, Verdict.DECLINE}:
        issues.append(Issue("decision", f"Send {expected} or decline. This call does not wait for another decision."))
        return issues
    if too_large := decision_size_issues(decision):
        return issues + too_large
    if decision.arguments is not None:
        issues += argument_issues(call, decision)
    if decision.verdict == Verdict.RESUME:
        issues += issues_by_schema(decision.resume_data, call.resume_schema, "resumeData")
    elif decision.resume_data is not None:
        issues.append(Issue("resumeData", "Only the decision resume has data. Omit this."))
    return issues


def decision_size_issues(decision: Decision) -> list[Issue]:
    """Return the issues of arguments and data that are larger than the input of a run may be."""
    message = f"This must not exceed {settings.RUN_MAX_INPUT // 1024:,} KB. Send less."
    return [
        Issue(name, message)
        for name, value in (("arguments", decision.arguments), ("resumeData", decision.resume_data))
        if value is not None and json_size(value) > settings.RUN_MAX_INPUT
    ]


def json_size(value: JSONValue) -> int:
    """Return the bytes of the JSON of a value, which a form may have sent with half of a surrogate pair."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def argument_issues(call: PendingCall, decision: Decision) -> list[Issue]:
    """Return the issues of edited arguments."""
    if decision.verdict != Verdict.APPROVE:
        return [Issue("arguments", "Only an approval can change the arguments. Omit this.")]
    if not isinstance(decision.arguments, dict):
        return [Issue("arguments", "Send an object with the arguments of the tool.")]
    known = (call.arguments_schema or {}).get("properties")
    unknown = [name for name in decision.arguments if known is not None and name not in known]
    unknown_issues = [Issue(f"arguments.{printable_key(name)}", "The tool has no such argument.") for name in unknown]
    return unknown_issues or issues_by_schema(decision.arguments, call.arguments_schema, "arguments")


def store_decision(call: PendingCall, decision: Decision, user: User, via: PendingCall.Via) -> None:
    """Save a decision. Raise AlreadyDecided if the call was decided meanwhile."""
    columns = {
        "state": STATE_BY_VERDICT[decision.verdict],
        "decided_by": user,
        "decided_by_name": user.get_username(),
        "decided_at": Now(),
        "via": via,
        "reason": decision.reason,
        "edited_arguments": edited_arguments(call, decision),
        "resume_data": decision.resume_data,
    }
    is_stored = PendingCall.objects.waiting().filter(pk=call.pk).update(**columns)
    call.refresh_from_db()
    if not is_stored:
        raise AlreadyDecided(call)
    announce_call(approval_decided, call)
