"""Events of a run about an ACP agent that works for it."""

from __future__ import annotations

from uuid import UUID

from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import run_db
from runs_app.events.stream_chunks import build_chunk
from runs_app.models import AgentRun
from tools_app.acp.sessions import WorkPlace
from tools_app.acp.turn import Update


def add_agent_event(deps: RunDeps, update: Update, agent: str, call_id: str = "") -> None:
    """Add an event to the run. `call_id` is the tool call whose task the agent has."""
    if deps.record is None:
        return
    kind = "acp-thought" if update.kind == "thought" else update.kind
    call = {"parentToolCallId": call_id} if call_id else {}
    text = {"text": update.text} if update.text else {}
    # What the agent sent comes first, so that it replaces none of ours.
    deps.record(build_chunk(kind, **{**update.payload, "agent": agent, **call, **text}))


async def find_work_place(deps: RunDeps) -> WorkPlace:
    """Return where an agent works for a run: in the conversation of the run that a person or a program asked for."""
    root_id = deps.root_id or deps.run_id
    thread_id = deps.thread_id
    if thread_id is None and root_id != deps.run_id:
        thread_id = await run_db(thread_of, root_id)
    return WorkPlace(deps.run_id, root_id, deps.owner_id, thread_id)


def thread_of(run_id: UUID) -> int | None:
    return AgentRun.objects.filter(pk=run_id).values_list("thread_id", flat=True).first()
