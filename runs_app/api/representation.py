"""Representation of runs in the API."""

from __future__ import annotations

from access_app.caller import Caller
from agentcms.wire.json_types import JSONObject
from runs_app.events.redaction import REDACTED_ERROR, redact_chunk
from runs_app.models import AgentRun, RunEvent, RunStep


def run_body(run: AgentRun, user: Caller) -> JSONObject:
    """Return the body of a run in a list. The run must come from a queryset `with_roles`."""
    error = run.error if run.details_visible_to(user) else run.error and REDACTED_ERROR
    return {
        "id": run.pk,
        "agentId": run.agent_key,
        "ownerId": run.owner_id,
        "parentId": run.parent_id,
        "target": run.target,
        "versionId": run.version_id,
        "versionNumber": run.version_number,
        "requestedBy": run.requested_by_name or None,
        "status": run.status,
        "finishReason": run.finish_reason or None,
        "usage": run.usage,
        "cost": None if run.cost is None else float(run.cost),
        "error": error or None,
        "isDemo": run.is_demo,
        "createdAt": run.created_at,
        "startedAt": run.started_at,
        "firstTextAt": run.first_text_at,
        "cancelRequestedAt": run.cancel_requested_at,
        "finishedAt": run.finished_at,
    }


def run_detail_body(run: AgentRun, user: Caller) -> JSONObject:
    """Return the complete body of a run, as far as the user may see it. The run must be `with_roles`."""
    has_details = run.details_visible_to(user)
    scores = run.scores.all() if has_details else []
    children = run.children.order_by("created_at").values_list("pk", flat=True) if has_details else []
    return {
        **run_body(run, user),
        "threadId": run.thread.key if run.thread else None,
        "messages": run.input["messages"],
        "options": run.input.get("options") or {},
        "requestContext": run.request_context,
        "instructions": run.filled_instructions if run.configuration_visible_to(user) else None,
        "configuration": run.configuration if run.configuration_visible_to(user) else None,
        "output": run.output,
        "warnings": run.warnings if has_details else [],
        "scores": [{"scorer": score.scorer, "score": score.score, "error": score.error or None} for score in scores],
        "children": list(children),
    }


def event_body(event: RunEvent) -> JSONObject:
    return {"number": event.number, "type": event.type, "data": event.data, "createdAt": event.created_at}


def redacted_event_body(event: RunEvent) -> JSONObject:
    """Return the body of an event of the answer for readers who may not see more."""
    return {**event_body(event), "data": redact_chunk(event.data)}


def run_step_body(step: RunStep) -> JSONObject:
    """Return the body of a step for readers who may see more than the answer."""
    return {
        "key": step.key,
        "kind": step.kind,
        "state": step.state,
        "attempts": step.attempts,
        "startedAt": step.started_at,
        "finishedAt": step.finished_at,
        "result": step.result,
    }
