"""Runs that other runs ask for: an agent that uses another as a tool."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from agents_app.models import Agent
from runs_app.engine.context import AskSubAgent
from runs_app.engine.threads import run_db
from runs_app.models import AgentRun
from runs_app.resolution import stored_agents

if TYPE_CHECKING:
    from runs_app.engine.engine import Engine

MOST_CHILDREN = 50  # of one run and all below it, however deep


class RunResult(NamedTuple):
    """How a run ended."""

    status: str
    output: str
    error: str


class Counter:
    """How many runs a family has had."""

    count = 0


@dataclass(frozen=True)
class RunTree:
    """Where a run stands among those that asked for it."""

    visited: tuple[str, ...]  # the agents that asked one another to come here, this one last
    counter: Counter = field(default_factory=Counter)

    @classmethod
    def of(cls, run: AgentRun) -> RunTree:
        return cls((run.agent_key,))

    def refusal(self, key: str) -> str:
        """Why a sub-agent cannot be asked from here, or nothing."""
        if key in self.visited:
            return f"The agent '{key}' cannot be asked from here: it would ask itself."
        if self.counter.count >= MOST_CHILDREN:
            return f"The agent '{key}' cannot be asked: this run has asked other agents {MOST_CHILDREN} times."
        return ""

    def asker(self, engine: Engine, run: AgentRun) -> AskSubAgent:
        """What a run asks its sub-agents with."""

        async def ask(key: str, prompt: str, call_id: str) -> str:
            if refusal := self.refusal(key):
                raise SubAgentFailed(refusal)
            self.counter.count += 1
            child = await run_db(store_child, run, key, prompt, call_id)
            return await await_child(engine, child, RunTree((*self.visited, key), self.counter))

        return ask


class SubAgentFailed(Exception):
    """A sub-agent that could not answer, in a sentence for the model that asked."""


def store_child(run: AgentRun, key: str, prompt: str, call_id: str) -> AgentRun:
    """The row of a child run; its agent is the one that the key means now."""
    from runs_app.engine.start import start_child

    try:
        stored = stored_agents.sub_agent(key, run.owner_id)
    except Agent.DoesNotExist:
        raise SubAgentFailed(f"No agent is registered as '{key}'.") from None
    return start_child(stored, parent=run, prompt=prompt, call_id=call_id)


async def await_child(engine: Engine, child: AgentRun, family: RunTree) -> str:
    """What a child run came to. Where the parent is stopped, the child is too."""
    from runs_app.engine.execute import execute_run

    task = engine.run_task(child.pk, execute_run(engine, child.pk, family))
    try:
        ended = await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        raise SubAgentFailed(f"The agent '{child.agent_key}' was stopped.") from None
    if ended is None or ended.status != AgentRun.Status.SUCCEEDED:
        raise SubAgentFailed(f"The agent '{child.agent_key}' could not answer. {ended.error if ended else ''}".strip())
    return ended.output
