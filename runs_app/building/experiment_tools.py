"""Tools in runs of experiments: mocks answer in place of tools, and no call waits for a person.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import ApprovalRequired, CallDeferred, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

from agentcms.wire.canonical import json_equal
from runs_app.building.step_policy import needs_approval
from runs_app.engine.context import RunDeps
from runs_app.exceptions import RunError

NO_PERSON_MESSAGE = "No person is there in an experiment."
NEVER_LIVE_KINDS = ("background task", "ACP agent")  # of the metadata of tools; they work outside of the run


@dataclass
class ExperimentTools(AbstractCapability[RunDeps]):
    """Capability that answers calls of tools by the mocks of an item, each mock once.

    A call that no mock matches calls the tool. With the policy `deny` it fails the run instead. A call that would
    wait for a person is declined.
    """

    mocks: list[Mapping[str, Any]]
    policy: str = "allow"
    used: set[int] = field(default_factory=set)

    async def wrap_tool_execute(
        self, ctx: RunContext[RunDeps], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        names = {tool_def.name, str((tool_def.metadata or {}).get("key", tool_def.name))}
        arguments = args if isinstance(args, dict) else {}
        of_tool = [number for number, mock in enumerate(self.mocks) if mock["toolName"] in names]
        matching = [number for number in of_tool if matches(self.mocks[number], arguments)]
        if free := [number for number in matching if number not in self.used]:
            self.used.add(free[0])
            return self.mocks[free[0]]["output"]
        if self.policy == "deny" or self.must_be_mocked(tool_def):
            raise RunError(*missing_mock(tool_def.name, bool(of_tool), bool(matching)))
        if needs_approval(tool_def, ctx.deps):
            return NO_PERSON_MESSAGE
        try:
            return await handler(args)
        except (ApprovalRequired, CallDeferred):
            return NO_PERSON_MESSAGE

    def must_be_mocked(self, tool: ToolDefinition) -> bool:
        return (tool.metadata or {}).get("kind") in NEVER_LIVE_KINDS


def matches(mock: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Return whether a mock is for a call with these arguments."""
    return mock.get("matchArgs") == "ignore" or json_equal(mock["args"], arguments)


def missing_mock(name: str, has_mocks: bool, has_matches: bool) -> tuple[str, str]:
    """Return the message and the code for a call that no mock answers."""
    if has_matches:
        return f"The mocks of the tool '{name}' are used up. Add one for each call.", "TOOL_MOCK_EXHAUSTED"
    if has_mocks:
        return f"No mock of the tool '{name}' has the arguments of the call.", "TOOL_MOCK_MISMATCH"
    return f"The tool '{name}' has no mock. Add one, or allow calls without a mock.", "TOOL_MOCK_NOT_DECLARED"


def experiment_tools(run_input: Mapping[str, Any]) -> list[ExperimentTools]:
    """Return the capability of a run of an experiment, or none for other runs."""
    options = run_input.get("experiment")
    if options is None:
        return []
    return [ExperimentTools(options.get("toolMocks") or [], options.get("unmockedToolPolicy") or "allow")]
