"""The calls that a model has made and that this process does not execute now.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests

from runs_app.approvals.lookup import CHILD_RUN_ID, TASK_ID

NOT_EXECUTED_MESSAGE = (
    "This call needs approval, but the client has calls to execute first. Call the tool again, alone."
)


def waits_for_calls(output: object) -> bool:
    """Return whether the output of a segment means that the run waits for people or for child runs.

    Calls of tools that the API client executes end the run instead, whatever else the model calls with them.
    """
    # A client sends results as its next message, which starts another run: nobody could continue this one.
    return isinstance(output, DeferredToolRequests) and not client_calls(output)


def client_calls(requests: DeferredToolRequests) -> list[ToolCallPart]:
    """Return the calls of tools that the API client executes."""
    return [
        call
        for call in requests.calls
        if not {CHILD_RUN_ID, TASK_ID} & requests.metadata.get(call.tool_call_id, {}).keys()
    ]


def unexecuted_calls(requests: DeferredToolRequests) -> list[ToolCallPart]:
    """Return the calls for which the run would wait, if the API client had no calls to execute."""
    executed_by_client = {call.tool_call_id for call in client_calls(requests)}
    return [call for call in (*requests.approvals, *requests.calls) if call.tool_call_id not in executed_by_client]
