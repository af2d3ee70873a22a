"""Prompts to ACP agents, from tools and from child runs.

Imports the ACP library, which is heavy. Import this module only where an agent is prompted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from acp.schema import PromptResponse, Usage

from runs_app.engine.thread_pools import run_briefly, run_db
from tools_app.acp.cached_agents import AcpRecord, get_available_agent
from tools_app.acp.call_signal import acp_prompted
from tools_app.acp.errors import AgentEnded, RecordChanged
from tools_app.acp.permissions import Decisions, PermissionRequest, load_always, load_permission_answers
from tools_app.acp.sessions import WorkPlace, agent_pool
from tools_app.acp.turn import PromptTurn, Update
from tools_app.models import AcpAgent

CONTINUE_MESSAGE = (
    "(This task was interrupted for a decision of a person, which is made now. Continue it, and do not repeat what is "
    "done. Ask again for the same permission where you need it: the decision is given at once.)"
)


@dataclass
class PromptResult:
    """The end of a prompt. With a `request`, a person must decide first, and the prompt is sent again then."""

    request: PermissionRequest | None = None
    usage: Usage | None = None
    stop_reason: str = ""


@dataclass
class Prompt:
    """A task for an agent. `call_id` limits the decisions to those of one tool call of the run."""

    key: str
    task: str
    place: WorkPlace
    can_ask: bool
    emit: Callable[[Update], None]
    call_id: str = ""

    async def send(self) -> PromptResult:
        """Send the task, and again the same task after a decision. Raise AcpError."""
        record = await run_db(get_available_agent, self.key)
        started, outcome = time.monotonic(), "failed"
        try:
            turn, response = await self.prompt(record)
            outcome = "suspended" if response is None else "succeeded"
        except AgentEnded as error:
            outcome = "crashed"
            self.emit(Update("acp-crash", payload={"exitCode": error.exit_code, "stderr": error.stderr}))
            raise
        finally:
            seconds = time.monotonic() - started
            acp_prompted.send(sender=AcpAgent, agent=self.key, outcome=outcome, seconds=seconds)
        if response is None:
            return PromptResult(request=turn.request)
        if response.usage is not None:
            self.emit(Update("acp-usage", payload=response.usage.model_dump(by_alias=True, exclude_none=True)))
        return PromptResult(usage=response.usage, stop_reason=response.stop_reason)

    async def prompt(self, record: AcpRecord) -> tuple[PromptTurn, PromptResponse | None]:
        """Prompt the agent as soon as nobody else does. Return the answer, or None if a person must be asked first."""
        while True:
            with suppress(RecordChanged):
                async with agent_pool().use(record, self.place) as (process, note):
                    decisions = await run_db(self.load_decisions, record)
                    turn = PromptTurn(self.emit, decisions)
                    if note:
                        turn.add_activity("acp-session", message=note)
                    await run_briefly(process.client.workspace.reject_full)  # an earlier task may have filled it
                    texts = [self.task, CONTINUE_MESSAGE] if decisions.answers else [self.task]
                    return turn, await process.prompt(texts, turn)
            record = await run_db(get_available_agent, self.key)

    def load_decisions(self, record: AcpRecord) -> Decisions:
        answers = load_permission_answers(self.place.run_id, self.call_id)
        always = load_always(record.pk, self.place.owner_id, self.place.thread_id)
        return Decisions(record.permissions, self.can_ask, answers, always)
