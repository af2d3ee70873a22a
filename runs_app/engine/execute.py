"""Execution of one run, from its claim to its end.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from pydantic_ai import Agent
from pydantic_ai.run import AgentRun as ModelRun
from pydantic_ai.tools import DeferredToolRequests, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from runs_app import scoring
from runs_app.building.messages import client_tool_definitions, prompt_and_history
from runs_app.engine import failures, leases
from runs_app.engine.context import RunDeps
from runs_app.engine.limits import RunLimits, run_limits
from runs_app.engine.sub_runs import RunResult, RunTree
from runs_app.engine.threads import run_blocking, run_db
from runs_app.events.chunks import Chunk, build_chunk, to_storable_json
from runs_app.events.recorder import Recorder, usage_payload
from runs_app.exceptions import RunError
from runs_app.models import AgentRun
from runs_app.providers.schema_cache import convert_schemas
from runs_app.requests.options import Options, merge_options, model_settings
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from runs_app.building.agent import BuiltAgent
    from runs_app.engine.engine import Engine

log = logging.getLogger(__name__)

MIN_EVENTS_BETWEEN_CHECKS = 100  # of the tokens of an answer, while it streams


@dataclass
class RunExecution:
    """State of a run while it executes. `columns` are the values that its end writes to the row."""

    engine: Engine
    run_id: UUID
    model: str = "The model"
    model_run: ModelRun[RunDeps, Any] | None = None
    columns: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recorder = Recorder(partial(self.engine.writer.add, self.run_id), str(self.run_id))

    @property
    def usage(self) -> dict[str, Any]:
        """The tokens used so far, under wire names."""
        return usage_payload(self.model_run.usage) if self.model_run else {}

    def close(self, last: Chunk, **columns: Any) -> Awaitable[bool]:
        """Write the last chunk and the end of the run. The result is False if another process owns the run."""
        figures = {"usage": self.usage, "cost": self.model_run.usage.cost} if self.model_run else {}
        self.columns = {"output": to_storable_json(self.recorder.text), **self.columns, **figures, **columns}
        self.recorder.add(last)
        return asyncio.wrap_future(self.engine.writer.close(self.run_id, **self.columns))


async def execute_run(engine: Engine, run: AgentRun, tree: RunTree | None = None) -> RunResult:
    """Execute a run and write its end."""
    execution = RunExecution(engine, run.pk)
    engine.writer.register(run.pk)
    try:
        await run_within_timeout(execution, run, tree or RunTree.root(run))
    except asyncio.CancelledError:
        record_cancelled(execution)
        raise
    except Exception as error:
        record_failure(execution, error)
    else:
        await record_success(execution, run)
    columns = execution.columns
    return RunResult(columns["status"], columns["output"], columns.get("error", ""))


async def run_within_timeout(execution: RunExecution, run: AgentRun, tree: RunTree) -> None:
    try:
        async with asyncio.timeout(settings.RUN_TIMEOUT) as clock:
            await run_agent(execution, run, tree)
    except TimeoutError:
        if clock.expired():
            raise RunError(f"The run took longer than {settings.RUN_TIMEOUT} seconds and was stopped.") from None
        raise


# --- Ends of a run


async def record_success(execution: RunExecution, run: AgentRun) -> None:
    finish_reason, usage = execution.recorder.finish_reason, execution.usage
    last = build_chunk(
        "finish",
        stepResult={"reason": finish_reason, "isContinued": False, "warnings": []},
        output={"usage": usage},
        usage=usage,
        metadata={"modelId": execution.model},
        messages={"all": [], "user": [], "nonUser": []},
    )
    is_written = await execution.close(last, status=AgentRun.Status.SUCCEEDED, finish_reason=finish_reason)
    if is_written and finish_reason != "tool-calls" and run.configuration.get("scorers"):
        await run_db(scoring.enqueue_scoring, run)


def record_cancelled(execution: RunExecution) -> None:
    """Record that a user cancelled the run, or that the process stops."""
    if execution.engine.is_stopping:
        close_failed(execution, leases.LOST_MESSAGE)
    else:
        execution.close(build_chunk("abort"), status=AgentRun.Status.CANCELLED)


def record_failure(execution: RunExecution, error: Exception) -> None:
    message = to_storable_json(failures.failure_message(error, execution.model))
    if failures.is_expected(error):
        # Log the message, not the error itself, which may quote an API key.
        log.warning("Run %s failed: %s", execution.run_id, message)
    else:
        log.error("Run %s failed.", execution.run_id, exc_info=error)
    close_failed(execution, message)


def close_failed(execution: RunExecution, message: str) -> None:
    last = build_chunk("error", error={"name": "Error", "message": message})
    execution.close(last, status=AgentRun.Status.FAILED, finish_reason="error", error=message)


# --- The run itself


async def run_agent(execution: RunExecution, run: AgentRun, tree: RunTree) -> None:
    built: BuiltAgent = await run_db(ResolvedAgent.from_run(run).build)
    execution.model = built.model_name
    warnings = [*run.warnings, *(warning._asdict() for warning in built.warnings)]
    execution.columns = {"warnings": warnings, "is_demo": built.is_demo}
    execution.recorder.add(build_chunk("start", id=run.agent_key, messageId=str(run.pk), warnings=warnings))
    client_tools = client_tool_definitions(run.input.get("clientTools") or [])
    if client_tools:
        await run_blocking(convert_schemas, built.agent.model, client_tools)
    options = merge_options(built.options, run.input.get("options") or {})
    deps, limits = run_deps(execution.engine, run, tree, options), run_limits(options)
    async with model_run_context(run, built, deps, limits, client_tools) as model_run:
        execution.model_run = model_run
        await record_steps(model_run, execution.recorder, limits)
    if isinstance(model_run.result.output, str):
        execution.columns["output"] = to_storable_json(model_run.result.output)


def run_deps(engine: Engine, run: AgentRun, tree: RunTree, options: Options) -> RunDeps:
    return RunDeps(
        run_id=run.pk,
        agent_key=run.agent_key,
        owner_id=run.owner_id,
        user_id=run.requested_by_id,
        call_sub_agent=tree.sub_agent_caller(engine, run, execute_run),
        thread_id=run.thread_id,
        instructions=run.filled_instructions,
        agent_path=tree.agent_path,
        options=options,
    )


def model_run_context(
    run: AgentRun, built: BuiltAgent, deps: RunDeps, limits: RunLimits, client_tools: list[ToolDefinition]
) -> Any:
    """Return the run of pydantic-ai as an async context manager."""
    prompt, history = prompt_and_history(run.input["messages"])
    return built.agent.iter(
        prompt,
        message_history=history or None,
        deps=deps,
        model_settings=model_settings(deps.options),
        usage_limits=limits,
        infer_name=False,
        **client_tool_options(client_tools),
    )


def client_tool_options(tools: list[ToolDefinition]) -> dict[str, Any]:
    """Return the arguments that let the model call tools of the API client. Such a call ends the run."""
    if not tools:
        return {}
    return {
        "toolsets": [ExternalToolset(tools, id="client-tools")],
        "output_type": [str, DeferredToolRequests],
    }


async def record_steps(model_run: ModelRun[RunDeps, Any], recorder: Recorder, limits: RunLimits) -> None:
    """Iterate over the steps of the run and record the events of each."""
    async for node in model_run:
        if Agent.is_model_request_node(node):
            recorder.begin_step()
            await record_answer(node, model_run, recorder, limits)
        elif Agent.is_call_tools_node(node):
            await record_tool_calls(node, model_run, recorder)
            recorder.end_step(node.model_response, calls=bool(node.model_response.tool_calls))


async def record_answer(node: Any, model_run: ModelRun[RunDeps, Any], recorder: Recorder, limits: RunLimits) -> None:
    """Record an answer of the model. Raise UsageLimitExceeded if it has too many tokens."""
    async with node.stream(model_run.ctx) as stream:
        count, next_check = 0, 1
        async for event in stream:
            recorder.record(event)
            count += 1
            if count == next_check:
                limits.check_tokens(stream.usage)
                # A check takes longer the longer the answer is. Checks at growing distances take linear time together.
                next_check += max(MIN_EVENTS_BETWEEN_CHECKS, count // 4)


async def record_tool_calls(node: Any, model_run: ModelRun[RunDeps, Any], recorder: Recorder) -> None:
    """Record the tool calls of an answer and their results."""
    async with node.stream(model_run.ctx) as events:
        async for event in events:
            recorder.record(event)
