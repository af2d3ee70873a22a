"""Tools of pydantic-ai that give tasks to ACP agents.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import RunContext

from agentcms.wire.json_types import JSONMapping
from agents_app.registry import Entry
from runs_app import calling
from runs_app.building.tools import AgentTool, outside_tool
from runs_app.engine.context import RunDeps
from tools_app.acp.connection.prompts import Prompt
from tools_app.acp.errors import AcpError
from tools_app.acp.run_events import add_agent_event, find_work_place
from tools_app.acp.turn import Update


def acp_tool(key: str, entry: Entry) -> AgentTool:
    """Build the tool of an ACP agent, which is started when the tool is called."""

    async def call(context: RunContext[RunDeps], arguments: JSONMapping) -> Any:
        return await give_task(entry.target, str(arguments["task"]), context.deps)

    tool = outside_tool(entry, call, at_most_once=True, origin={"server": entry.target})
    tool.timeout = None  # the limits of the agent have one
    return tool


async def give_task(key: str, task: str, deps: RunDeps) -> dict[str, str]:
    """Return the answer of an ACP agent. Suspend the call if a person must decide about a request of the agent."""
    call = calling.current()
    texts: list[str] = []

    def emit(update: Update) -> None:
        if update.kind == "text":
            texts.append(update.text)
        else:
            add_agent_event(deps, update, key, call.tool_call_id)

    prompt = Prompt(key, task, await find_work_place(deps), deps.is_durable, emit, call.tool_call_id)
    result = await prompt.send()
    if result.request is not None:
        call.suspend(result.request.payload(key), resume_schema=result.request.resume_schema)
    if result.stop_reason == "refusal":
        raise AcpError("The ACP agent refused the task.")
    return {"output": "".join(texts)}
