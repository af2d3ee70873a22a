"""Items made of runs: the input, the answer as ground truth, and the calls of tools as mocks and expected steps."""

from __future__ import annotations

from access_app.caller import Caller
from agentcms.wire.json_types import JSONObject
from runs_app.models import AgentRun

MAX_MOCKS = 200  # of an item


def item_of_run(run: AgentRun, user: Caller, *, with_mocks: bool = False, with_steps: bool = False) -> JSONObject:
    """Return the columns of an item for a run, which must come `with_roles`.

    Its calls become mocks or the expected trajectory. Former members of the team get the question
    and the answer alone.
    """
    columns: JSONObject = {
        "input": input_of(run),
        "ground_truth": run.output or None,
        "source": {"type": "trace", "referenceId": str(run.pk)},
    }
    if not run.details_visible_to(user):
        return columns
    if run.request_context:
        columns["request_context"] = dict(run.request_context)
    mocks = mocks_of(run) if with_mocks or with_steps else []
    if with_mocks and mocks:
        columns["tool_mocks"] = mocks
    if with_steps and mocks:
        steps = [{"name": mock["toolName"], "stepType": "tool_call"} for mock in mocks]
        columns["expected_trajectory"] = {"steps": steps, "ordering": "relaxed"}
    return columns


def input_of(run: AgentRun) -> object:
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
    mocks: list[JSONObject] = []
    for data in rows.values_list("data", flat=True):
        payload = data.get("payload") or {}
        key = str(payload.get("toolCallId"))
        if data["type"] == "tool-call":
            calls[key] = payload
        elif call := calls.get(key):
            output = payload.get("result")
            mocks.append({"toolName": str(call.get("toolName")), "args": call.get("args") or {}, "output": output})
    return mocks[:MAX_MOCKS]
