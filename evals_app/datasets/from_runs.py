"""Items made of runs: the input, the answer as ground truth, and the calls of tools as mocks."""

from __future__ import annotations

from typing import Any

from agents_app.configuration.schema import JSONObject
from runs_app.models import AgentRun


def item_of_run(run: AgentRun, *, with_calls: bool = False) -> JSONObject:
    """Return the columns of an item for a run. With its calls, they become mocks and the expected trajectory."""
    columns: JSONObject = {
        "input": input_of(run),
        "ground_truth": run.output or None,
        "source": {"type": "trace", "referenceId": str(run.pk)},
    }
    if run.request_context:
        columns["request_context"] = dict(run.request_context)
    if with_calls and (mocks := mocks_of(run)):
        columns["tool_mocks"] = mocks
        steps = [{"name": mock["toolName"], "stepType": "tool_call"} for mock in mocks]
        columns["expected_trajectory"] = {"steps": steps, "ordering": "relaxed"}
    return columns


def input_of(run: AgentRun) -> Any:
    """Return the messages of a run: the text alone if there is only one."""
    messages = run.input["messages"]
    parts = messages[-1]["content"]
    if len(messages) == 1 and all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return {"messages": messages}


def mocks_of(run: AgentRun) -> list[JSONObject]:
    """Return a mock for each call of a tool that has a result."""
    rows = run.events.filter(data__type__in=["tool-call", "tool-result"]).order_by("number")
    calls: dict[str, JSONObject] = {}
    mocks = []
    for data in rows.values_list("data", flat=True):
        payload = data.get("payload") or {}
        key = str(payload.get("toolCallId"))
        if data["type"] == "tool-call":
            calls[key] = payload
        elif call := calls.get(key):
            output = payload.get("result")
            mocks.append({"toolName": str(call.get("toolName")), "args": call.get("args") or {}, "output": output})
    return mocks
