"""What the API answers of runs."""

from __future__ import annotations

from typing import Any

from runs_app.models import AgentRun, RunEvent


def run_body(run: AgentRun) -> dict[str, Any]:
    """A run as a list has it."""
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


def run_detail_body(run: AgentRun, user: Any) -> dict[str, Any]:
    """A run with all that is kept of it but its events, and but what its reader may not see of the agent."""
    return {
        **run_body(run),
        "threadId": run.thread.key if run.thread else None,
        "messages": run.input["messages"],
        "options": run.input.get("options") or {},
        "configuration": run.configuration if run.configuration_visible_to(user) else None,
        "output": run.output,
        "warnings": run.warnings,
        "scores": [
            {"scorer": each.scorer, "score": each.score, "error": each.error or None} for each in run.scores.all()
        ],
        "children": list(run.children.order_by("created_at").values_list("pk", flat=True)),
    }


def event_body(event: RunEvent) -> dict[str, Any]:
    return {"number": event.number, "type": event.type, "data": event.data, "createdAt": event.created_at}
