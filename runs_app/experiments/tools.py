"""Tools in runs of experiments: mocks answer in place of tools, and no call waits for a person.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_ai import ApprovalRequired, CallDeferred, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

from agents_app.configuration.acp_agents import find_acp_entry
from agents_app.configuration.background_tasks import FOREGROUND, OVERRIDE
from agents_app.configuration.references import find_code_entry
from agents_app.registry import Kind
from runs_app.building.background_tools import find_rules_of_call
from runs_app.building.step_policy import needs_approval
from runs_app.engine.context import RunDeps
from runs_app.exceptions import RunError
from runs_app.experiments.mocks import NO_PERSON_MESSAGE, matches, missing_mock_message


@dataclass
class ExperimentTools(AbstractCapability[RunDeps]):
    """Capability that answers calls of tools by the mocks of an item, each mock once.

    A call that no mock matches calls the tool. With the policy `deny` it fails the run instead, and always if the
    tool works outside of the run. A call that would wait for a person is declined.
    """

    mocks: list[Mapping[str, Any]]
    policy: str = "allow"

    async def wrap_tool_execute(
        self, ctx: RunContext[RunDeps], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        names = {tool_def.name, str((tool_def.metadata or {}).get("key", tool_def.name))}
        # As the model sent them: the validated ones also have the defaults, which no mock made of a run has.
        arguments = {name: value for name, value in call.args_as_dict().items() if name != OVERRIDE}
        of_tool = [number for number, mock in enumerate(self.mocks) if mock["toolName"] in names]
        matching = [number for number in of_tool if matches(self.mocks[number], arguments)]
        if free := [number for number in matching if number not in ctx.deps.used_mocks]:
            ctx.deps.used_mocks.add(free[0])
            return self.mocks[free[0]]["output"]
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


def experiment_tools(run_input: Mapping[str, Any]) -> list[ExperimentTools]:
    """Return the capability of a run of an experiment, or none for other runs."""
    options = run_input.get("experiment")
    if options is None:
        return []
    return [ExperimentTools(options.get("toolMocks") or [], options.get("unmockedToolPolicy") or "allow")]
