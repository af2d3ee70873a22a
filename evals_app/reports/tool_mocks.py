"""Reports about mocks of tools in the run of an item: those that answered, and the calls that had none."""

from __future__ import annotations

from collections.abc import Sequence

from agentcms.wire.json_types import JSONObject
from agents_app.configuration.background_tasks import OVERRIDE
from evals_app.scorers.results import ToolUse, calls_of_run
from runs_app.models import AgentRun
from runs_app.tool_mocks.mocks import NO_PERSON_MESSAGE, MockFailure, find_failure, mock_matches, names_of_mock


def find_mock_failure(tree: Sequence[AgentRun]) -> tuple[str, MockFailure] | None:
    """Return the error of the first run of a tree that a call without a mock has ended, or None."""
    for run in tree:
        if (failure := find_failure(run.error)) is not None:
            return run.error, failure
    return None


def mock_report(run: AgentRun, mocks: Sequence[JSONObject], failure: MockFailure | None) -> JSONObject:
    """Return which mocks answered calls of a run and its sub-agents, which did not, and which calls were live."""
    unused = dict(enumerate(mocks))
    report: JSONObject = {"served": [], "unconsumed": [], "liveCalls": []}
    for call in calls_of_run(run)[0]:
        entry = {"toolName": call.name, "args": arguments_of(call)}
        number = next((number for number, mock in unused.items() if is_answer(mock, entry)), None)
        if number is not None:
            unused.pop(number)
            report["served"].append({"mockIndex": number, **entry})
        elif call.result != NO_PERSON_MESSAGE:
            report["liveCalls"].append(entry)
    report["unconsumed"] = [
        {"mockIndex": number, "toolName": mock["toolName"], "args": mock["args"]} for number, mock in unused.items()
    ]
    if failure is not None:
        report["failure"] = {"code": failure.code, **take_failed_call(report["liveCalls"], failure.tool)}
    return report


def arguments_of(call: ToolUse) -> JSONObject:
    """Return the arguments of a call as its tool gets them."""
    return {name: value for name, value in call.arguments.items() if name != OVERRIDE}


def is_answer(mock: JSONObject, call: JSONObject) -> bool:
    return call["toolName"] in names_of_mock(mock) and mock_matches(mock, call["args"])


def take_failed_call(calls: list[JSONObject], tool: str) -> JSONObject:
    """Remove the last call of a tool from the calls that no mock answered, and return it."""
    for index in reversed(range(len(calls))):
        if calls[index]["toolName"] == tool:
            return calls.pop(index)
    return {"toolName": tool, "args": {}}
