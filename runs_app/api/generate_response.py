"""The response of `generate`: a run as one object, in the form that the published client expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from django.http import HttpResponse

from access_app.caller import Caller
from access_app.role import Role, RoleRequired
from agentcms.api.responses import json_response
from agentcms.db.outages import read_through_outage
from agentcms.errors import ApiError, Conflict, NotFound, Unauthorized, Unavailable
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import UnknownName
from memory_app.realms import refresh_credentials
from runs_app.api.lookups import run_not_found
from runs_app.approvals.lookup import waiting_calls_below
from runs_app.engine.start.idempotency import READ_ANSWER_HINT
from runs_app.events import streams
from runs_app.events.stream_access import StreamAccess, is_run_visible
from runs_app.events.stream_chunks import StreamChunk
from runs_app.frequent_queries import chunks_of_run
from runs_app.models import AgentRun, PendingCall
from runs_app.requests.structured_output import STRUCTURED_OUTPUT

ResponseBody = JSONObject

RUN_FAILED = 424  # not a 5xx: clients retry those, and each retry would be another paid run

# The client expects these fields. This application has no such features.
EMPTY_FIELDS: ResponseBody = {"sources": [], "files": [], "error": None}


def answer_response(user: Caller, run_id: UUID, agent_id: str, unknown: Sequence[UnknownName] = ()) -> HttpResponse:
    """Wait until a run is over and return its answer, or what it waits for.

    `unknown` are names of a request that did not start the run, and that are therefore no warnings of it.

    Raise ApiError if it has no answer, and also RoleRequired if the user may no longer read all of it.
    """
    access = StreamAccess(user, lambda: is_run_visible(user, run_id, details=True))
    try:
        run = streams.wait_until_over(run_id)
    except AgentRun.DoesNotExist:
        raise NotFound(f"Run {run_id} of agent {agent_id} was deleted while it answered") from None
    if read_through_outage(streams.stopping, access.has_ended):
        raise access_failure(user, run)
    if run.status == AgentRun.Status.SUCCEEDED:
        body = read_through_outage(streams.stopping, generate_response, run)
    elif run.status == AgentRun.Status.SUSPENDED:
        body = read_through_outage(streams.stopping, suspended_response, run)
    else:
        raise run_failure(run)
    return json_response(body | {"warnings": [*run.warnings, *(name._asdict() for name in unknown)]})


def access_failure(user: Caller, run: AgentRun) -> ApiError | RoleRequired:
    """Return the error of a caller who lost access while a run worked. Its streams end then."""
    if not refresh_credentials(user):
        error = Unauthorized()
        error.headers["X-Run-ID"] = str(run.pk)
        return error
    if run.requested_by_id != user.pk:
        return run_not_found(str(run.pk))
    return RoleRequired(Role.VIEWER, run.owner_id, READ_ANSWER_HINT.format(run=run.pk))


def run_failure(run: AgentRun) -> ApiError:
    """Return the error response of a run without an answer."""
    headers = {"X-Run-ID": str(run.pk)}
    if not run.is_finished:
        return Unavailable(f"The server is about to stop. Read run {run.pk} shortly.")
    if run.status == AgentRun.Status.CANCELLED:
        return Conflict("The run was stopped.", "run_cancelled", headers)
    return ApiError(RUN_FAILED, run.error, "run_failed", headers=headers)


def suspended_response(run: AgentRun) -> ResponseBody:
    """Return the response body of a run that waits for people, with the call that has waited longest."""
    body = generate_response(run) | {"finishReason": AgentRun.Status.SUSPENDED.value}
    if waiting := waiting_calls_below(run):
        call = waiting[0].call
        payload: ResponseBody = {"toolCallId": waiting[0].shown_id, "toolName": call.tool, "args": call.arguments}
        if call.kind == PendingCall.Kind.SUSPEND:
            payload |= {"suspendPayload": call.payload, "resumeSchema": call.resume_schema}
        body["suspendPayload"] = payload
    return body


def generate_response(run: AgentRun) -> ResponseBody:
    """Return the response body of a run that has succeeded, or that waits for people."""
    steps_chunks = list(split_steps(chunks_of_run(run_id=run.pk)))
    steps = [step_body(run, chunks) for chunks in steps_chunks]
    last = steps[-1] if steps else step_body(run, [])
    return {
        "runId": run.pk,
        "text": run.output or last["text"],  # a run that waits for people has no output yet
        "finishReason": run.finish_reason,
        "usage": run.usage,
        "totalUsage": run.usage,
        "steps": steps,
        **{name: last[name] for name in ("toolCalls", "toolResults", "reasoning", "reasoningText")},
        **EMPTY_FIELDS,
        "object": structured_output(run),
        "warnings": run.warnings,
        "response": response_body(run, [message for chunks in steps_chunks for message in step_messages(chunks)]),
        "agentId": run.agent_key,
        "versionId": run.version_id,
        "versionNumber": run.version_number,
        "cost": None if run.cost is None else float(run.cost),
        "isDemo": run.is_demo,
    }


def structured_output(run: AgentRun) -> object:
    """Return the answer of a run as an object. None if its caller has asked for a text, or it is not valid JSON."""
    is_asked_for = bool(run.input.get("options", {}).get(STRUCTURED_OUTPUT))
    has_object = is_asked_for and run.output and run.finish_reason != "tool-calls"
    try:
        return parse_strict_json(run.output.encode()) if has_object else None
    except InvalidJSON:  # such as a number that a double cannot hold
        return None


def response_body(run: AgentRun, messages: list[ResponseBody]) -> ResponseBody:
    name = run.configuration["model"]["name"]
    return {"id": run.pk, "timestamp": run.finished_at or run.suspended_at, "modelId": name, "messages": messages}


def split_steps(events: Iterable[StreamChunk]) -> Iterator[list[StreamChunk]]:
    """Yield the chunks of each complete step."""
    step: list[StreamChunk] = []
    for data in events:
        if data["type"] == "step-start":
            step = []
        elif data["type"] == "step-discarded":  # another process repeats the answer
            del step[1:]
        step.append(data)
        if data["type"] == "step-finish":
            yield step


def step_body(run: AgentRun, chunks: list[StreamChunk]) -> ResponseBody:
    finish: ResponseBody = next((data["payload"] for data in chunks if data["type"] == "step-finish"), {})
    reasoning = joined_text(chunks, "reasoning-delta")
    return {
        "text": joined_text(chunks, "text-delta"),
        "reasoning": [{"type": "reasoning", "text": reasoning}] if reasoning else [],
        "reasoningText": reasoning,
        "toolCalls": call_chunks(run, chunks, "tool-call"),
        "toolResults": call_chunks(run, chunks, "tool-result"),
        "finishReason": finish.get("stepResult", {}).get("reason", run.finish_reason),
        "usage": finish.get("output", {}).get("usage", {}),
    }


def joined_text(chunks: Iterable[StreamChunk], kind: str) -> str:
    return "".join(data["payload"]["text"] for data in chunks if data["type"] == kind)


def call_chunks(run: AgentRun, chunks: Iterable[StreamChunk], kind: str) -> list[ResponseBody]:
    return [{**data, "runId": run.pk, "from": "AGENT"} for data in chunks if data["type"] == kind]


def step_messages(chunks: Iterable[StreamChunk]) -> Iterator[ResponseBody]:
    """Yield the model messages of a step. Clients send them back with their next message."""
    parts: list[ResponseBody] = []
    results: list[ResponseBody] = []
    for data in chunks:
        payload = data["payload"]
        if data["type"] == "text-start":
            parts.append({"type": "text", "text": ""})
        elif data["type"] == "text-delta":
            parts[-1]["text"] += payload["text"]
        elif data["type"] == "tool-call":
            parts.append(
                {"type": "tool-call", **call_identity(payload), "input": payload["args"], "args": payload["args"]}
            )
        elif data["type"] == "tool-result":
            kind = "error-json" if payload["isError"] else "json"
            output = {"type": kind, "value": payload["result"]}
            results.append({"type": "tool-result", **call_identity(payload), "output": output})
    if parts:
        yield {"role": "assistant", "content": parts}
    if results:
        yield {"role": "tool", "content": results}


def call_identity(payload: ResponseBody) -> ResponseBody:
    return {"toolCallId": payload["toolCallId"], "toolName": payload["toolName"]}
