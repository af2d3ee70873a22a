"""Tools in runs of experiments: mocks answer in place of tools, and no call waits for a person.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic_ai import ApprovalRequired, CallDeferred, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.acp_agents import find_acp_entry
from agents_app.configuration.background_tasks import FOREGROUND, OVERRIDE
from agents_app.configuration.references import find_code_entry
from agents_app.registry import Kind
from runs_app.building.background_tools import find_rules_of_call
from runs_app.building.step_policy import needs_approval
from runs_app.engine.context import RunDeps
from runs_app.engine.journaling.journal import current_journal
from runs_app.engine.journaling.step_input import MOCK_PREFIX, identify_mock
from runs_app.engine.thread_pools import run_db
from runs_app.exceptions import RunError
from runs_app.models import RunStep
from runs_app.tool_mocks.mocks import NO_PERSON_MESSAGE, missing_mock_message, mock_matches


@dataclass
class ExperimentTools(AbstractCapability[RunDeps]):
    """Capability that answers calls of tools by the mocks of an item, each mock once.

    A call that no mock matches calls the tool. With the policy `deny` it fails the run instead, and always if the
    tool works outside of the run. A call that would wait for a person is declined.
    """

    mocks: list[JSONMapping]
    policy: str = "allow"

    async def wrap_tool_execute(
        self, ctx: RunContext[RunDeps], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        names = {tool_def.name, str((tool_def.metadata or {}).get("key", tool_def.name))}
        # As the model sent them: the validated ones also have the defaults, which no mock made of a run has.
        arguments = {name: value for name, value in call.args_as_dict().items() if name != OVERRIDE}
        of_tool = [number for number, mock in enumerate(self.mocks) if mock["toolName"] in names]
        matching = [number for number in of_tool if mock_matches(self.mocks[number], arguments)]
        number = await use_mock(ctx.deps, tool_def.name, arguments, call.tool_call_id, matching) if matching else None
        if number is not None:
            return self.mocks[number]["output"]
        is_outside = works_outside(ctx, tool_def)
        if self.policy == "deny" or is_outside:
            facts = {"has_mocks": bool(of_tool), "has_matches": bool(matching), "is_outside": is_outside}
            raise RunError(missing_mock_message(tool_def.name, **facts))
        if needs_approval(tool_def, ctx.deps):
            return NO_PERSON_MESSAGE
        try:
            return await handler(args)
        except (ApprovalRequired, CallDeferred):
            return NO_PERSON_MESSAGE


async def use_mock(
    deps: RunDeps, name: str, arguments: JSONMapping, call_id: str, matching: Sequence[int]
) -> int | None:
    """Return the number of the first of these mocks that has not answered yet, or None.

    The journal of a durable run keeps the choice. A process that continues the run, or one of its sub-agents, would
    otherwise use a mock again.
    """
    journal = current_journal.get()
    if journal is None:
        return take_first(deps.used_mocks, matching)

    async def choose() -> int | None:
        # The steps tell what other processes have used. The set has what runs of this process use right now.
        deps.used_mocks.update(await run_db(find_used_mocks, deps.root_id))
        return take_first(deps.used_mocks, matching)

    number = await journal.execute_step(identify_mock(name, arguments, call_id), choose)
    if not isinstance(number, int):
        return None
    deps.used_mocks.add(number)
    return number


def take_first(used: set[int], matching: Sequence[int]) -> int | None:
    """Return the first number that is not used yet, which it is from now on, or None."""
    number = next((number for number in matching if number not in used), None)
    if number is not None:
        used.add(number)
    return number


def find_used_mocks(root_id: UUID | None) -> set[int]:
    """Return the numbers of the mocks that have answered in a tree of durable runs, in any process."""
    steps = RunStep.objects.filter(run__root_id=root_id, key__contains=f"/{MOCK_PREFIX}", state=RunStep.State.DONE)
    return {number for number in steps.values_list("result", flat=True) if isinstance(number, int)}


def works_outside(ctx: RunContext[RunDeps], tool: ToolDefinition) -> bool:
    """Return whether a call would work outside of the run: in a background task, or in an ACP agent."""
    metadata = tool.metadata or {}
    if metadata.get("kind") == Kind.ACP_AGENT:
        return True
    if metadata.get("kind") == Kind.AGENT:
        key = str(metadata.get("key"))
        return find_code_entry(Kind.AGENT, key) is None and find_acp_entry(Kind.AGENT, key) is not None
    rules = find_rules_of_call(ctx, metadata)
    return rules is not None and rules.disposition != FOREGROUND


def experiment_tools(run_input: JSONMapping) -> list[ExperimentTools]:
    """Return the capability of a run of an experiment, or none for other runs."""
    options = run_input.get("experiment")
    if options is None:
        return []
    return [ExperimentTools(options.get("toolMocks") or [], options.get("unmockedToolPolicy") or "allow")]
