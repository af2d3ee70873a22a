"""ACP agents as sub-agents: a child run, whose model is the ACP agent.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from pydantic_ai import Agent, FunctionToolset, ModelResponse, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponseStreamEvent, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RequestUsage

from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONMapping
from agents_app.registry import Entry
from runs_app import calling
from runs_app.building.agent import TOOLSET_ID, BuiltAgent
from runs_app.building.tools import AgentTool, report_failures_to_model
from runs_app.engine.context import RunDeps
from runs_app.engine.journaling.capability import Journaled
from runs_app.engine.thread_pools import run_db
from runs_app.exceptions import RunError
from runs_app.tracing import run_spans
from tools_app.acp.connection.prompts import Prompt, PromptResult
from tools_app.acp.errors import AcpError
from tools_app.acp.run_events import add_agent_event, find_work_place
from tools_app.acp.turn import Update
from tools_app.models import AcpPrompt

PERMISSION_TOOL = "request_permission"
NO_TEXT_MESSAGE = "(The agent returned no text.)"
UNKNOWN_OUTCOME_MESSAGE = (
    "The server stopped while the ACP agent worked, and a task is not given twice. It is not known what the agent has "
    "done. Check its workspace before you ask again."
)
# The tool that an agent calls for a permission. People read the request, not a model.
PERMISSION_SCHEMA = {
    "type": "object",
    "properties": {"request": {"type": "object"}, "resumeSchema": {"type": "object"}},
    "required": ["request", "resumeSchema"],
}


def build_sub_agent(entry: Entry) -> BuiltAgent:
    """Build the agent of a child run."""
    tool = permission_tool(entry.target)
    agent = Agent(
        AcpModel(entry.target),
        name=entry.title,
        deps_type=RunDeps,
        toolsets=[FunctionToolset([tool], id=TOOLSET_ID)],
        # A run may end with a call that waits for a person.
        output_type=[str, DeferredToolRequests],
        capabilities=[*run_spans.instrumentation(), Journaled()],
    )
    return BuiltAgent(agent, {}, (), False, f"acp/{entry.target}", {}, {tool.name: tool})


def permission_tool(key: str) -> AgentTool:
    """Build the tool with which a child run waits for a person."""

    async def ask(context: RunContext[RunDeps], arguments: JSONMapping) -> Any:
        call = calling.current()
        if call.resume_data is None:
            request = {**arguments["request"], "agent": key}
            call.suspend({"permissionRequest": request}, resume_schema=arguments["resumeSchema"])
        return call.resume_data

    handler = report_failures_to_model(PERMISSION_TOOL, ask)

    async def function(context: RunContext[RunDeps], /, **arguments: JSONMapping) -> Any:
        return await handler(context, arguments)

    tool = Tool.from_schema(
        function, name=PERMISSION_TOOL, description="", json_schema=PERMISSION_SCHEMA, takes_ctx=True
    )
    tool.metadata = {"kind": "ACP agent", "key": PERMISSION_TOOL}
    return tool


class AcpModel(Model[Any]):
    """A model whose answers are those of an ACP agent to the task of the run."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key

    @property
    def model_name(self) -> str:
        return self.key

    @property
    def system(self) -> str:
        return "acp"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        raise RunError("An ACP agent answers only in a run.")

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        if run_context is None:
            raise RunError("An ACP agent answers only in a run.")
        deps: RunDeps = run_context.deps
        # Stored first: a process that continues the run after a crash must not give the task again.
        await run_db(record_prompt, deps.run_id, deps.steps_before + run_context.run_step)
        yield AcpStream(model_request_parameters, self.key, child_task_of(messages), deps)


def record_prompt(run_id: UUID, number: int) -> None:
    """Record that a prompt is sent. Raise RunError if it was sent before: its outcome is not known."""
    try:
        with transaction.atomic():
            AcpPrompt.objects.create(run_id=run_id, number=number)
    except IntegrityError:
        raise RunError(UNKNOWN_OUTCOME_MESSAGE, "outcome_unknown") from None


def child_task_of(messages: Sequence[ModelMessage]) -> str:
    """Return the task of a child run: its first message."""
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, UserPromptPart):
                content = [part.content] if isinstance(part.content, str) else part.content
                return "\n".join(item for item in content if isinstance(item, str))
    return ""


@dataclass
class AcpStream(StreamedResponse):
    """The answer of an ACP agent, as it arrives."""

    key: str
    task: str
    deps: RunDeps
    part_number: int = 0
    last_kind: str = ""
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        updates: asyncio.Queue[Update | None] = asyncio.Queue()
        place = await find_work_place(self.deps)
        prompt = Prompt(self.key, self.task, place, self.deps.is_durable, updates.put_nowait)
        sending = asyncio.ensure_future(prompt.send())
        # Ends the loop below, also if the prompt fails.
        sending.add_done_callback(lambda _: updates.put_nowait(None))
        try:
            while (update := await updates.get()) is not None:
                for event in self.convert(update):
                    yield event
            result = await sending
        except AcpError as error:
            raise RunError(str(error), "acp") from None
        finally:
            sending.cancel()
        for event in self.convert_end(result):
            yield event

    def convert(self, update: Update) -> Iterator[ModelResponseStreamEvent]:
        """Yield the events of a text or a thought. Report anything else."""
        if update.kind not in ("text", "thought"):
            add_agent_event(self.deps, update, self.key)
            return
        if update.kind != self.last_kind:
            self.last_kind = update.kind
            self.part_number += 1
        if update.kind == "text":
            yield from self._parts_manager.handle_text_delta(vendor_part_id=self.part_number, content=update.text)
        else:
            yield from self._parts_manager.handle_thinking_delta(vendor_part_id=self.part_number, content=update.text)

    def convert_end(self, result: PromptResult) -> Iterator[ModelResponseStreamEvent]:
        """Yield the call for a permission, if a person must be asked. Keep the usage."""
        if result.usage is not None:
            usage = result.usage
            self._usage = RequestUsage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cached_read_tokens or 0,
            )
        if result.request is not None:
            arguments = {"request": result.request.body, "resumeSchema": result.request.resume_schema}
            yield self._parts_manager.handle_tool_call_part(
                vendor_part_id="permission",
                tool_name=PERMISSION_TOOL,
                args=arguments,
                tool_call_id=f"permission_{uuid7().hex}",
            )
        elif not self.last_kind:
            yield from self._parts_manager.handle_text_delta(vendor_part_id=1, content=NO_TEXT_MESSAGE)

    async def close_stream(self) -> None:
        return  # there is no connection: `_get_event_iterator` cancels the prompt

    @property
    def model_name(self) -> str:
        return self.key

    @property
    def provider_name(self) -> str:
        return "acp"

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self.created_at
