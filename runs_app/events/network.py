"""The events of a run as the chunks of a network: an agent that routes a task to sub-agents, workflows and tools.

They are another view of the same events. No row stores them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from agentcms.wire.canonical import text_or_json
from agentcms.wire.json_types import JSONObject
from runs_app.events.stream_chunks import FINAL_TYPES, StreamChunk
from runs_app.models import AgentRun, RunEvent

FROM_NETWORK = "NETWORK"
TARGET_PREFIXES = ("agent", "workflow")  # of the names of tools that call these
TEXT_CHUNK_TYPES = ("step-start", "step-discarded", "text-start", "text-delta")
STATE_TYPES = ("step-start", "step-discarded", "text-delta", "tool-call")  # the events that change a converter
WAITING_EVENTS = {"tool-call-approval": "approval", "tool-call-suspended": "suspended"}
COMPLETION_REASON = "The agent has answered."

Payload = JSONObject


class NetworkConverter:
    """Converter of the events of one run into the chunks of a network, in order, beginning after a number."""

    def __init__(self, run: AgentRun, after: int = 0) -> None:
        self.run = run
        self.task = network_task_of(run)
        self.iteration = 0  # of the routing agent: its requests to the model
        self.texts: list[str] = []  # of the current step
        self.answer: Payload = {}  # with the `object` of an answer that is one
        self.calls: dict[str, tuple[str, str]] = {}  # the kind and the name of the target of each call, by its ID
        if after:
            self.skip_events(after)

    def skip_events(self, last: int) -> None:
        """Read the events up to a number without returning chunks. The stream before has sent those."""
        events = RunEvent.objects.filter(run=self.run.pk, number__lte=last, data__type__in=STATE_TYPES)
        for chunk in events.order_by("number").values_list("data", flat=True).iterator():
            deque(self.convert(chunk), maxlen=0)

    def convert(self, chunk: StreamChunk) -> Iterator[StreamChunk]:
        """Yield the chunks of a network for one event. Events that networks do not have are left out."""
        kind, payload = chunk["type"], chunk["payload"]
        if kind == "start":
            yield self.build("routing-agent-start", **self.start_payload())
        elif kind in TEXT_CHUNK_TYPES:
            yield from self.convert_text(kind, payload)
        elif kind == "tool-call":
            yield self.call_start(payload)
        elif kind == "tool-result":
            yield self.call_end(payload)
        elif kind in WAITING_EVENTS:
            yield self.waiting(payload, WAITING_EVENTS[kind])
        elif kind == "step-finish":
            yield self.step_finish(is_complete=False)
        elif kind == "object-result":
            yield self.object_result(payload)
        elif kind in FINAL_TYPES:
            yield from self.end(kind, payload)

    def convert_text(self, kind: str, payload: Payload) -> Iterator[StreamChunk]:
        """Yield the chunks of the text of a step, and remember it."""
        if kind == "text-delta":
            self.texts.append(payload["text"])
            yield self.build("routing-agent-text-delta", text=payload["text"])
        elif kind == "text-start":
            yield self.build("routing-agent-text-start")
        elif kind == "step-discarded":  # another process repeats the answer
            self.texts.clear()
            yield self.build(kind, iteration=self.iteration)
        else:
            self.texts.clear()
            self.iteration += 1

    def build(self, kind: str, **payload: Any) -> StreamChunk:
        return {"type": kind, "from": FROM_NETWORK, "payload": {**payload, "runId": str(self.run.pk)}}

    @property
    def result(self) -> str:
        return "".join(self.texts)

    def start_payload(self) -> Payload:
        data = {**self.routing("routing", self.run.agent_key), "isOneOff": False, "verboseIntrospection": False}
        return {"agentId": self.run.agent_key, "networkId": self.run.agent_key, "inputData": data}

    def routing(self, kind: str, name: str) -> Payload:
        """Return what each chunk says about the target of the current iteration."""
        return {"task": self.task, "primitiveId": name, "primitiveType": kind, "iteration": self.iteration}

    def target(self, call_id: str, tool_name: str) -> tuple[str, str]:
        """Return the kind and the name of the target of a call. The call of a sub-agent may be named by two IDs."""
        own_id = call_id.partition("/")[0]
        return self.calls.get(call_id) or self.calls.get(own_id) or target_of(tool_name)

    def call_start(self, payload: Payload) -> StreamChunk:
        kind, name = self.calls[payload["toolCallId"]] = target_of(payload["toolName"])
        if kind == "tool":
            call = {key: payload[key] for key in ("toolName", "toolCallId", "args")}
            return self.build("tool-execution-start", args={**call, "selectionReason": ""})
        arguments = payload["args"] if isinstance(payload["args"], dict) else {}
        prompt = str(arguments.get("prompt") or arguments.get("message") or "")
        details = {**self.routing(kind, name), "prompt": prompt, "result": "", "selectionReason": ""}
        return self.build(f"{kind}-execution-start", **identity(kind, name), args={**arguments, **details})

    def call_end(self, payload: Payload) -> StreamChunk:
        kind, name = self.target(payload["toolCallId"], payload["toolName"])
        call = {key: payload[key] for key in ("toolCallId", "toolName", "result")}
        ended = {**self.routing(kind, name), **call, "isComplete": False, "isError": payload.get("isError", False)}
        return self.build(f"{kind}-execution-end", **identity(kind, name), **ended, usage={})

    def waiting(self, payload: Payload, event: str) -> StreamChunk:
        """Return the chunk of a call that waits for a person, in a sub-agent or workflow or as an own tool."""
        kind, name = self.target(payload["toolCallId"], payload["toolName"])
        if (kind, event) == ("workflow", "approval"):  # networks have no such chunk
            kind, name = "tool", payload["toolName"]
        details = {**identity(kind, name), **payload, "selectionReason": "", "usage": {}}
        return self.build(f"{kind}-execution-{event}", **details)

    def step_finish(self, *, is_complete: bool) -> StreamChunk:
        return self.build(
            "network-execution-event-step-finish",
            task=self.task,
            result=self.result,
            isComplete=is_complete,
            iteration=self.iteration,
        )

    def object_result(self, payload: Payload) -> StreamChunk:
        """Return the chunk of an answer that is an object. The result of the run is its JSON."""
        self.answer = {"object": payload["object"]}
        self.texts = [text_or_json(payload["object"])]
        return {"type": "network-object-result", "from": FROM_NETWORK, "payload": self.answer}

    def end(self, kind: str, payload: Payload) -> Iterator[StreamChunk]:
        """Yield the last chunks. Clients read the result from the very last one."""
        usage = payload.get("usage") or {}
        ended = {
            **self.routing("routing", self.run.agent_key),
            "prompt": self.task,
            "result": self.result,
            "isComplete": kind == "finish",
        }
        if kind == "error":
            yield {"type": "error", "from": FROM_NETWORK, "payload": payload}
        elif kind == "abort":
            yield self.build("routing-agent-abort", primitiveType="routing", primitiveId=self.run.agent_key)
        else:
            yield self.build("routing-agent-end", **ended, selectionReason="", usage=usage)
            finished = {"completionReason": COMPLETION_REASON, "isOneOff": False, "usage": usage, **self.answer}
            yield self.build("network-execution-event-finish", **ended, **finished)
        yield self.step_finish(is_complete=kind == "finish")


def network_task_of(run: AgentRun) -> str:
    """Return the text of the last message that the run answers."""
    for message in reversed(run.input["messages"]):
        if message["role"] == "user":
            return " ".join(part["text"] for part in message["content"] if part["type"] == "text")
    return ""


def target_of(tool_name: str) -> tuple[str, str]:
    """Return the kind and the name of the sub-agent, workflow or tool that a tool name stands for."""
    prefix, _, name = tool_name.partition("-")
    return (prefix, name) if prefix in TARGET_PREFIXES and name else ("tool", tool_name)


def identity(kind: str, name: str) -> Payload:
    """Return the members that name a sub-agent or a workflow."""
    if kind == "agent":
        return {"agentId": name}
    return {"workflowId": name, "name": name} if kind == "workflow" else {}
