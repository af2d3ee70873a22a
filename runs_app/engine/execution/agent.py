"""The agent of a run: its dependencies, and its model run with its steps."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, TypedDict

from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from agentcms.wire.json_types import JSONMapping, JSONObject
from runs_app.approvals.segments import Segment, changed_arguments, deferred_results, processed_parts
from runs_app.building.call_ids import count_call_ids
from runs_app.building.messages import client_tool_definitions, prompt_and_history
from runs_app.building.structured_output import output_types
from runs_app.engine.context import ProcessedParts, RunDeps
from runs_app.engine.execution.state import PreparedRun, RunExecution, joined_warnings
from runs_app.engine.execution.steps import record_steps
from runs_app.engine.sub_runs import RunTree
from runs_app.engine.thread_pools import run_briefly, run_db
from runs_app.engine.usage_limits import RunLimits, run_limits
from runs_app.events.stream_chunks import build_chunk, to_storable_json
from runs_app.models import AgentRun
from runs_app.providers.schema_cache import convert_schemas
from runs_app.requests.messages import InputMessage
from runs_app.requests.options import Options, merge_options, model_settings
from runs_app.resolution import ResolvedAgent
from runs_app.thread_signals.signal_messages import delivered_keys
from runs_app.thread_signals.woken_input import SIGNALS, messages_of_woken
from runs_app.tool_mocks.experiment_tools import experiment_tools

if TYPE_CHECKING:
    from runs_app.building.agent import BuiltAgent


async def run_agent(execution: RunExecution, run: AgentRun, tree: RunTree) -> None:
    built: BuiltAgent = await run_db(ResolvedAgent.from_run(run).build)
    execution.model = built.model_name
    execution.recorder.tool_origins = built.tool_origins
    warnings = joined_warnings(run.warnings, built.warnings)
    execution.columns = {"warnings": warnings, "is_demo": built.is_demo}
    record_beginning(execution, run, warnings)
    client_tools = client_tool_definitions(run.input.get("clientTools") or [])
    if client_tools:
        # In a thread: the schemas of a caller may be long, and the event loop executes other runs.
        await run_briefly(convert_schemas, built.agent.model, client_tools)
    options = merge_options(built.options, run.input.get("options") or {})
    deps, limits = run_deps(execution, run, tree, options), run_limits(options)
    execution.prepared = PreparedRun(built, deps)
    if execution.journal is not None:
        execution.journal.limits = limits
    messages = await first_messages(run)
    context = model_run_context(run, messages, execution.prepared, execution.segment, limits, client_tools)
    async with context as model_run:
        execution.model_run = model_run
        await record_steps(model_run, execution.recorder, deps, limits)
    record_answer_value(execution, model_run.result.output)


def record_answer_value(execution: RunExecution, output: object) -> None:
    """Note the output of a model run for its end: a text, an object as JSON, or nothing if the run waits."""
    if isinstance(output, str):
        execution.columns["output"] = to_storable_json(output)
    elif isinstance(output, dict):
        execution.answer = to_storable_json(output)
        execution.columns["output"] = json.dumps(execution.answer, ensure_ascii=False)


def record_beginning(execution: RunExecution, run: AgentRun, warnings: list[dict[str, str]]) -> None:
    """Record the start of the run, unless this segment continues it."""
    if run.segment == 0:
        execution.recorder.add(build_chunk("start", id=run.agent_key, messageId=str(run.pk), warnings=warnings))
    else:
        segment = execution.segment
        execution.recorder.begin_segment(segment.steps, segment.calls, changed_arguments(segment))


def run_deps(execution: RunExecution, run: AgentRun, tree: RunTree, options: Options) -> RunDeps:
    return RunDeps(
        run_id=run.pk,
        agent_key=run.agent_key,
        owner_id=run.owner_id,
        user_id=run.requested_by_id,
        call_sub_agent=tree.sub_agent_caller(execution.engine, run, options, execution.execute_child),
        **memory_deps(run),
        user_name=run.requested_by_name,
        created_at=run.created_at,
        prompt_key=run.input["messages"][-1].get("id", ""),
        is_woken=bool(run.input.get(SIGNALS)),
        instructions=run.filled_instructions,
        agent_path=tree.agent_path,
        options=options,
        root_id=run.root_id,
        request_context=run.context_with_facts,
        is_experiment="experiment" in run.input,
        used_mocks=tree.used_mocks,
        is_resumed=run.segment > 0,
        **earlier_segments(execution.segment),
        is_durable=run.is_durable,
        record=execution.recorder.add,
    )


class EarlierSegments(TypedDict):
    """The dependencies that come from earlier segments of a run."""

    known_signals: set[str]
    steps_before: int
    remembered_count: int
    processed_parts: ProcessedParts
    call_numbers: Counter[str]


def earlier_segments(segment: Segment) -> EarlierSegments:
    return {
        "known_signals": delivered_keys(segment.messages),
        "steps_before": segment.steps,
        "remembered_count": segment.remembered_count,
        "processed_parts": processed_parts(segment.messages),
        # Without the remembered messages: their calls are those of other runs.
        "call_numbers": count_call_ids(segment.messages[segment.remembered_count :]),
    }


class MemoryDeps(TypedDict):
    """The dependencies that say which memory a run uses."""

    thread_id: int | None
    resource_id: int | None
    memory_options: JSONMapping
    remembered: JSONObject


def memory_deps(run: AgentRun) -> MemoryDeps:
    return {
        "thread_id": run.thread_id,
        "resource_id": run.resource_id,
        "memory_options": run.input.get("memory") or {},
        "remembered": dict(run.remembered or {}),
    }


async def first_messages(run: AgentRun) -> list[InputMessage]:
    """Return the messages with which a run begins."""
    messages: list[InputMessage] = run.input["messages"]
    return await run_db(messages_of_woken, run) if run.input.get(SIGNALS) else messages


def model_run_context(
    run: AgentRun,
    messages: list[InputMessage],
    prepared: PreparedRun,
    segment: Segment,
    limits: RunLimits,
    client_tools: list[ToolDefinition],
) -> Any:
    """Return the run of pydantic-ai as an async context manager. It continues the messages of earlier segments."""
    built, deps = prepared
    # A later segment has no prompt of its own: it goes on with the results of the calls that waited.
    prompt, history = (None, segment.messages) if segment.messages else prompt_and_history(messages)
    return built.agent.iter(
        prompt,
        output_type=output_types(deps.options),
        message_history=history or None,
        deferred_tool_results=deferred_results(segment, built.tools),
        deps=deps,
        model_settings=model_settings(deps.options),
        usage=segment.usage,
        usage_limits=limits,
        infer_name=False,  # otherwise pydantic-ai searches the frames of the callers for one
        capabilities=experiment_tools(run.input) or None,
        # A call of a tool of the API client ends the run.
        toolsets=[ExternalToolset(client_tools, id="client-tools")] if client_tools else None,
    )
