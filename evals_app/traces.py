"""Runs as traces: a run is a trace, and its calls of tools and runs of sub-agents are spans."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from agentcms.wire.json_types import JSONObject
from evals_app.run_trees import RunTreeRows, read_run_tree
from runs_app.models import AgentRun

RUN_SPAN_TYPE = "agent_run"
RUN_STATUSES = {"error": "failed", "success": "succeeded"}  # by the status of spans; the others are called alike
SPAN_STATUSES = {status: name for name, status in RUN_STATUSES.items()}
SPAN_TYPES = ("tool-call", "tool-result", "tool-error")


def root_span(run: AgentRun, trace_id: str, parent_id: str | None, has_details: bool) -> JSONObject:
    """Return the span of a run."""
    return {
        "traceId": trace_id,
        "spanId": str(run.pk),
        "parentSpanId": parent_id,
        "name": f"agent run: '{run.agent_key}'",
        "spanType": RUN_SPAN_TYPE,
        "entityType": "agent",
        "entityId": run.agent_key,
        "entityName": run.agent_key,
        "runId": str(run.pk),
        "isEvent": False,
        "startedAt": run.started_at or run.created_at,
        "endedAt": run.finished_at,
        "status": SPAN_STATUSES.get(run.status, run.status),
        "input": run.input["messages"],
        "output": run.output,
        "error": {"message": run.error} if run.error and has_details else None,
        "attributes": {"usage": run.usage, "versionNumber": run.version_number, "target": run.target},
        "metadata": {"ownerId": run.owner_id, "finishReason": run.finish_reason or None},
        "createdAt": run.created_at,
        "updatedAt": run.finished_at,
    }


def spans_of_run(run: AgentRun, trace_id: str) -> Iterator[JSONObject]:
    """Yield the span of a run, those of its calls, and those of its sub-agents."""
    yield from spans_in_tree(read_run_tree(run.pk, SPAN_TYPES), run, trace_id, None)


def spans_in_tree(tree: RunTreeRows, run: AgentRun, trace_id: str, parent_id: str | None) -> Iterator[JSONObject]:
    """Yield the span of a run of a tree, those of its calls, and those of its sub-agents."""
    root = root_span(run, trace_id, parent_id, has_details=True)
    yield root
    begun: dict[str, JSONObject] = {}
    for event in tree.events[run.pk]:
        payload = event.data.get("payload") or {}
        call_id = str(payload.get("toolCallId", ""))
        if event.data["type"] == "tool-call":
            begun[call_id] = tool_span(root, call_id, payload, event.created_at)
        elif call_id in begun:
            is_error = event.data["type"] == "tool-error" or bool(payload.get("isError"))
            begun[call_id] |= {"output": payload.get("result"), "endedAt": event.created_at}
            begun[call_id]["error"] = {"message": str(payload.get("error", ""))[:1000]} if is_error else None
            begun[call_id]["status"] = "error" if is_error else "success"
    children = tree.children[run.pk]
    for call_id, span in begun.items():
        yield span
        if call_id in children:
            yield from spans_in_tree(tree, children[call_id], trace_id, span["spanId"])


def tool_span(root: JSONObject, call_id: str, payload: JSONObject, started_at: datetime) -> JSONObject:
    name = str(payload.get("toolName", ""))
    return {
        **root,
        "spanId": f"{root['spanId']}-{call_id}",
        "parentSpanId": root["spanId"],
        "name": f"tool: '{name}'",
        "spanType": "tool_call",
        "entityType": "tool",
        "entityId": name,
        "entityName": name,
        "startedAt": started_at,
        "endedAt": None,
        "status": "running",
        "input": payload.get("args"),
        "output": None,
        "error": None,
        "attributes": {"toolCallId": call_id},
        "metadata": {},
    }


def trajectory_of(spans: list[JSONObject]) -> JSONObject:
    """Return the steps of a trace in order, those of sub-agents inside the call of their agent."""
    steps: dict[str, JSONObject] = {}
    roots: list[JSONObject] = []
    for span in spans:
        step = {"stepType": span["spanType"], "name": span["entityName"], "toolArgs": None, "toolResult": None}
        if span["spanType"] == "tool_call":
            step |= {"toolArgs": span["input"], "toolResult": span["output"], "success": span["status"] == "success"}
        step["children"] = []
        steps[span["spanId"]] = step
        parent = steps.get(span["parentSpanId"] or "")
        (parent["children"] if parent else roots).append(step)
    return {"steps": roots[0]["children"] if roots else []}
