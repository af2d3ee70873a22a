"""Representation of runs in the API."""

from __future__ import annotations

from typing import Any

from access_app.caller import Caller
from runs_app.models import AgentRun, RunEvent


def run_body(run: AgentRun) -> dict[str, Any]:
    """Return the body of a run in a list."""
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
        "error": run.error or None,
        "isDemo": run.is_demo,
        "createdAt": run.created_at,
        "startedAt": run.started_at,
        "firstTextAt": run.first_text_at,
        "cancelRequestedAt": run.cancel_requested_at,
        "finishedAt": run.finished_at,
    }


def run_detail_body(run: AgentRun, user: Caller) -> dict[str, Any]:
    """Return the complete body of a run. The configuration is None if the user may not see it."""
    return {
        **run_body(run),
        "threadId": run.thread.key if run.thread else None,
        "messages": run.input["messages"],
        "options": run.input.get("options") or {},
        "configuration": run.configuration if run.configuration_visible_to(user) else None,
        "output": run.output,
        "warnings": run.warnings,
        "scores": [
            {"scorer": score.scorer, "score": score.score, "error": score.error or None} for score in run.scores.all()
        ],
        "children": list(run.children.order_by("created_at").values_list("pk", flat=True)),
    }


def event_body(event: RunEvent) -> dict[str, Any]:
    return {"number": event.number, "type": event.type, "data": event.data, "createdAt": event.created_at}
