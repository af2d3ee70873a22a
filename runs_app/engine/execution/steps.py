"""The steps of a model run, whose events are recorded."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, CallToolsNode, ModelRequestNode
from pydantic_ai.run import AgentRun as ModelRun

from runs_app.building.structured_output import calls_tools
from runs_app.engine.context import RunDeps
from runs_app.engine.usage_limits import AnswerGuard, RunLimits
from runs_app.events.durable_recorder import DurableRecorder
from runs_app.events.recorder import Recorder
from runs_app.requests.structured_output import STRUCTURED_OUTPUT
from runs_app.stop_conditions import STOP_WHEN

Called = CallToolsNode[RunDeps, Any]  # a step whose tools are called


async def record_steps(
    model_run: ModelRun[RunDeps, Any], recorder: Recorder, deps: RunDeps, limits: RunLimits
) -> None:
    """Iterate over the steps of the run and record the events of each."""
    called: Called | None = None
    async for node in model_run:
        end_step(called, recorder, is_last=Agent.is_end_node(node))
        called = None
        if Agent.is_model_request_node(node):
            recorder.begin_step()
            if isinstance(recorder, DurableRecorder):
                await read_answer(node, model_run)
            else:
                await record_answer(node, model_run, recorder, limits)
        elif Agent.is_call_tools_node(node):
            recorder.set_answer(node.model_response)
            await record_tool_calls(node, model_run, recorder)
            called = end_unless_last(node, recorder, deps)


def end_unless_last(node: Called, recorder: Recorder, deps: RunDeps) -> Called | None:
    """Record the end of a step whose tools were called. Return the node if only the next one shows how it ends.

    A stop condition is asked after the calls. With a structured output, a model may call tools and answer in one step.
    """
    if {STOP_WHEN, STRUCTURED_OUTPUT} & deps.options.keys():
        return node
    end_step(node, recorder)
    return None


def end_step(node: Called | None, recorder: Recorder, *, is_last: bool | None = None) -> None:
    """Record the end of a step, unless it waits for people. Then the next segment ends it."""
    if node is not None and not recorder.is_waiting:
        response = node.model_response
        recorder.end_step(response, calls=calls_tools(response.tool_calls), is_last=is_last)


async def record_answer(
    node: ModelRequestNode[RunDeps, Any], model_run: ModelRun[RunDeps, Any], recorder: Recorder, limits: RunLimits
) -> None:
    """Record an answer of the model. Raise UsageLimitExceeded if it has too many tokens."""
    async with node.stream(model_run.ctx) as stream:
        guard = AnswerGuard(limits)
        async for event in stream:
            recorder.record(event)
            guard.count_event(lambda: stream.usage)


async def read_answer(node: ModelRequestNode[RunDeps, Any], model_run: ModelRun[RunDeps, Any]) -> None:
    """Read an answer in a durable run, and record nothing.

    `record_model_events` records the events inside the step of the journal: a replayed answer has events, too.
    """
    async with node.stream(model_run.ctx) as stream:
        async for _ in stream:
            pass


async def record_tool_calls(node: Called, model_run: ModelRun[RunDeps, Any], recorder: Recorder) -> None:
    """Record the tool calls of an answer and their results."""
    async with node.stream(model_run.ctx) as events:
        async for event in events:
            recorder.record(event)
