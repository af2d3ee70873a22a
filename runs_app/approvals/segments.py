"""Segments of a run: what the next one needs from the one before, and the results of decided calls.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from uuid import UUID

from pydantic import TypeAdapter
from pydantic_ai import ModelMessagesTypeAdapter, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.usage import RunUsage

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.background_tasks import OVERRIDE
from runs_app.approvals.lookup import CHILD_RUN_ID, TASK_ID, background_task_id, child_run_id
from runs_app.approvals.suspending import new_call, rule_columns
from runs_app.building.background_tools import without_override
from runs_app.building.tools import AgentTool, to_tool_result
from runs_app.child_results import DELETED_AGENT_MESSAGE, RunResult, SubAgentError, child_output
from runs_app.engine.context import ProcessedParts
from runs_app.events.stream_chunks import to_storable_json
from runs_app.models import AgentRun, BackgroundTask, PendingCall
from runs_app.models.pending_call import stored_call_id

DECLINED_MESSAGE = "Tool call was not approved by the user."
DELETED_TASK_MESSAGE = "The background task was deleted."
LOST_TOOL_MESSAGE = (
    "The tool '{name}' was not called. It was removed, changed or switched off while the call waited, so this agent "
    "can no longer use it."
)

# Of messages and of their parts: they have defaults, but without them no reader knows which class a JSON object is of.
TYPE_NAMES = ("kind", "part_kind")

_usage_adapter = TypeAdapter(RunUsage)


@dataclass
class Segment:
    """The state of a run at the beginning of a segment. That of the first one is empty."""

    messages: list[ModelMessage] = field(default_factory=list)
    usage: RunUsage | None = None
    steps: int = 0  # requests to the model so far
    remembered_count: int = 0
    call_uses: dict[str, int] = field(default_factory=dict)  # of the keys of steps that are tool calls
    calls: dict[str, PendingCall] = field(default_factory=dict)  # the decided calls, by the IDs that the model gave
    children: dict[UUID, AgentRun] = field(default_factory=dict)  # the ended child runs of decided calls
    tasks: dict[UUID, BackgroundTask] = field(default_factory=dict)  # the ended background tasks of decided calls


def load_segment(run: AgentRun) -> Segment:
    """Return the state with which the current segment of a run begins."""
    if run.segment == 0:
        return Segment()
    stored = run.conversation or {}
    messages = ModelMessagesTypeAdapter.validate_python(stored["messages"])
    rows = PendingCall.objects.filter(run=run.pk, segment=run.segment - 1).exclude(state=PendingCall.State.OPEN)
    # Rows have the hash of a long ID, and pydantic-ai needs the IDs that the model gave.
    by_stored_id = {call.call_id: call for call in rows}
    ids = {part.tool_call_id: stored_call_id(part.tool_call_id) for part in last_calls(messages)}
    calls = {call_id: by_stored_id[stored_id] for call_id, stored_id in ids.items() if stored_id in by_stored_id}
    child_ids = [child_id for call in calls.values() if (child_id := child_run_id(call)) is not None]
    task_ids = [task_id for call in calls.values() if (task_id := background_task_id(call)) is not None]
    return Segment(
        messages,
        _usage_adapter.validate_python(stored["usage"]),
        stored["steps"],
        stored["rememberedCount"],
        stored["callUses"],
        calls,
        AgentRun.objects.defer("conversation", "input").in_bulk(child_ids) if child_ids else {},
        BackgroundTask.objects.in_bulk(task_ids) if task_ids else {},
    )


def last_calls(messages: Sequence[ModelMessage]) -> list[ToolCallPart]:
    """Return the tool calls of the last response."""
    response = next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)
    return response.tool_calls if response is not None else []


def processed_parts(messages: Sequence[ModelMessage]) -> ProcessedParts:
    """Return the parts that input processors have seen. Results after the last response were not yet sent."""
    end = max((index for index, message in enumerate(messages) if isinstance(message, ModelResponse)), default=0)
    requests = (message for message in messages[:end] if isinstance(message, ModelRequest))
    return {id(part): (part, part) for request in requests for part in request.parts}


# --- The end of a segment


def dump_messages(messages: Sequence[ModelMessage]) -> list[JSONObject]:
    """Return messages as JSON without their many empty members, which are half of a short conversation."""
    dumped: list[JSONObject] = ModelMessagesTypeAdapter.dump_python([*messages], mode="json")
    for entry, message in zip(dumped, messages, strict=True):
        pairs = zip(entry["parts"], message.parts, strict=True)
        entry["parts"] = [without_defaults(part, value) for part, value in pairs]
        if isinstance(message, ModelResponse):
            entry["usage"] = without_defaults(entry["usage"], message.usage)
    return [without_defaults(entry, message) for entry, message in zip(dumped, messages, strict=True)]


def without_defaults(dumped: JSONObject, value: JSONValue) -> JSONObject:
    """Return the JSON of a dataclass without the members that equal the default, except those that name its type."""
    defaults = {member.name: member.default for member in fields(value) if member.name not in TYPE_NAMES}
    empty = {name for name, default in defaults.items() if default is not MISSING and dumped.get(name) == default}
    return {name: item for name, item in dumped.items() if name not in empty}


def dump_conversation(
    messages: Sequence[ModelMessage],
    usage: RunUsage,
    *,
    steps: int,
    remembered_count: int,
    call_uses: Mapping[str, int],
) -> JSONObject:
    """Return what the next segment of a run needs, as JSON."""
    conversation: JSONObject = to_storable_json(
        {
            "messages": dump_messages(messages),
            "usage": without_defaults(_usage_adapter.dump_python(usage, mode="json"), usage),
            "steps": steps,
            "rememberedCount": remembered_count,
            "callUses": dict(call_uses),
        }
    )
    return conversation


def pending_calls(
    run: AgentRun, requests: DeferredToolRequests, segment: Segment, tools: Mapping[str, AgentTool]
) -> list[PendingCall]:
    """Return the unsaved rows of the calls for which a run waits. `tools` are those of its agent by name."""
    return [
        pending_call(run, part, requests.metadata.get(part.tool_call_id, {}), segment, tools.get(part.tool_name))
        for part in (*requests.approvals, *requests.calls)
    ]


def pending_call(
    run: AgentRun, part: ToolCallPart, metadata: JSONMapping, segment: Segment, tool: AgentTool | None
) -> PendingCall:
    arguments = to_storable_json(current_arguments(part, segment))
    if ((tool is not None and tool.metadata) or {}).get("background"):
        arguments.pop(OVERRIDE, None)  # not an argument of the tool
    if {CHILD_RUN_ID, TASK_ID} & metadata.keys():
        return new_call(
            run, part.tool_call_id, part.tool_name, arguments, kind=PendingCall.Kind.CHILD, payload=dict(metadata)
        )
    rules = (tool.metadata if tool is not None else None) or {}
    columns = rule_columns(rules)
    if metadata.get("kind") == PendingCall.Kind.SUSPEND:
        columns |= {
            "kind": PendingCall.Kind.SUSPEND,
            "payload": metadata["payload"],
            "resume_schema": metadata.get("resumeSchema") or rules.get("resume_schema"),
        }
    else:
        columns["kind"] = PendingCall.Kind.APPROVAL
    schema = without_override(tool.tool_def.parameters_json_schema) if tool is not None else None
    return new_call(run, part.tool_call_id, part.tool_name, arguments, arguments_schema=schema, **columns)


def current_arguments(part: ToolCallPart, segment: Segment) -> JSONObject:
    """Return the arguments with which a call is executed: those of the model, unless a person has changed them."""
    decided = segment.calls.get(part.tool_call_id)
    if decided is None:
        return part.args_as_dict()
    arguments: JSONObject = decided.current_arguments
    return arguments


# --- The beginning of a segment


def changed_arguments(segment: Segment) -> dict[str, JSONObject]:
    """Return the arguments of the calls that people have changed, by the IDs that the model gave."""
    parts = {part.tool_call_id: part for part in last_calls(segment.messages)}
    arguments = {
        call_id: current_arguments(parts[call_id], segment)
        for call_id, call in segment.calls.items()
        if call.kind != PendingCall.Kind.CHILD and is_approved(call)
    }
    return {
        call_id: changed
        for call_id, changed in arguments.items()
        if not json_equal(changed, to_storable_json(parts[call_id].args_as_dict()))
    }


def deferred_results(segment: Segment, tools: Container[str]) -> DeferredToolResults | None:
    """Return the decisions with which a segment begins, or None for the first segment.

    `tools` are the names of the tools that the agent has now.
    """
    if not segment.calls:
        return None
    results = DeferredToolResults()
    changed = changed_arguments(segment)
    for call_id, call in segment.calls.items():
        if call.kind == PendingCall.Kind.CHILD:
            results.calls[call_id] = awaited_result(call, segment)
        elif is_approved(call) and has_lost_tool(call, tools):
            results.calls[call_id] = ToolFailed(LOST_TOOL_MESSAGE.format(name=call.tool))
        elif is_approved(call):
            results.approvals[call_id] = ToolApproved(override_args=changed.get(call_id))
            results.metadata[call_id] = {"resumeData": call.resume_data}
        else:
            results.approvals[call_id] = ToolDenied(call.reason or DECLINED_MESSAGE)
    return results


def is_approved(call: PendingCall) -> bool:
    return call.state in {PendingCall.State.APPROVED, PendingCall.State.RESUMED}


def has_lost_tool(call: PendingCall, tools: Container[str]) -> bool:
    """Return whether the agent had the tool of a call when the call began to wait, and has it no more."""
    # Calls of tools that only some runs have, such as those of a registered memory, wait without a schema.
    return call.arguments_schema is not None and call.tool not in tools


def awaited_result(call: PendingCall, segment: Segment) -> object:
    """Return the result of the background task or of the child run of a call, or its failure."""
    task_id = background_task_id(call)
    if task_id is None:
        return child_result(call, segment.children)
    task = segment.tasks.get(task_id)
    if task is None:
        return ToolFailed(DELETED_TASK_MESSAGE)
    return task.result if task.status == BackgroundTask.Status.COMPLETED else ToolFailed(task.error)


def child_result(call: PendingCall, children: Mapping[UUID, AgentRun]) -> object:
    """Return the output of the child run of a call, or its failure."""
    # No run has the ID of a call, so a payload without a run finds none.
    child = children.get(child_run_id(call) or call.pk)
    if child is None:
        return ToolFailed(DELETED_AGENT_MESSAGE)
    try:
        return to_tool_result(child_output(child.agent_key, RunResult.of_row(child)))
    except SubAgentError as error:
        return ToolFailed(str(error))
    except ToolFailed as error:
        return error
