"""One run from its claim to its end. It imports pydantic-ai, which is heavy: import it where an agent runs."""

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
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import ExternalToolset

from runs_app import scoring
from runs_app.building.messages import client_tools, prompt_and_history
from runs_app.engine import failures, leases
from runs_app.engine.context import Running
from runs_app.engine.sub_runs import RunResult, RunTree
from runs_app.engine.threads import run_db
from runs_app.events.chunks import Chunk, chunk, to_storable_json
from runs_app.events.recorder import Recorder, usage
from runs_app.exceptions import RunError
from runs_app.models import AgentRun
from runs_app.requests.options import merge, model_settings, usage_limits
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from runs_app.building.agent import BuiltAgent
    from runs_app.engine.engine import Engine

log = logging.getLogger(__name__)

Status = AgentRun.Status


@dataclass
class RunExecution:
    """What is known of a run while it goes on; what must be kept of it is written at its end."""

    engine: Engine
    run_id: UUID
    model: str = "The model"
    model_run: ModelRun[Running, Any] | None = None
    columns: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recorder = Recorder(partial(self.engine.writer.add, self.run_id), str(self.run_id))

    @property
    def used(self) -> dict[str, Any]:
        """The tokens so far, as the wire has them."""
        return usage(self.model_run.usage) if self.model_run else {}

    def close(self, last: Chunk, **columns: Any) -> Awaitable[bool]:
        """Write the last chunk with how it ended; the answer is whether the run was still ours."""
        figures = {"usage": self.used, "cost": self.model_run.usage.cost} if self.model_run else {}
        self.columns = {"output": to_storable_json(self.recorder.text), **self.columns, **figures, **columns}
        self.recorder.add(last)
        return asyncio.wrap_future(self.engine.writer.close(self.run_id, **self.columns))


async def execute_run(engine: Engine, run_id: UUID, family: RunTree | None = None) -> RunResult | None:
    """Answer a run that waits, and write how it ended. None where it was not ours to answer."""
    performance = RunExecution(engine, run_id)
    engine.writer.open(run_id)
    try:
        run = await run_db(leases.claim, run_id, engine.holder)
        if run is None:
            engine.writer.forget(run_id)
            return None
        await within_time(performance, run, family or RunTree.of(run))
    except asyncio.CancelledError:
        record_cancelled(performance)
        raise
    except Exception as error:
        record_failure(performance, error)
    else:
        await succeeded(performance, run)
    return RunResult(
        performance.columns["status"], performance.columns["output"], performance.columns.get("error", "")
    )


async def within_time(performance: RunExecution, run: AgentRun, family: RunTree) -> None:
    try:
        async with asyncio.timeout(settings.RUN_TIMEOUT) as clock:
            await answer(performance, run, family)
    except TimeoutError:
        if clock.expired():
            raise RunError(f"The run took longer than {settings.RUN_TIMEOUT} seconds and was stopped.") from None
        raise


# --- How it ends


async def succeeded(performance: RunExecution, run: AgentRun) -> None:
    recorder, used = performance.recorder, performance.used
    last = chunk(
        "finish",
        stepResult={"reason": recorder.reason, "isContinued": False, "warnings": []},
        output={"usage": used},
        usage=used,
        metadata={"modelId": performance.model},
        messages={"all": [], "user": [], "nonUser": []},
    )
    written = await performance.close(last, status=Status.SUCCEEDED, finish_reason=recorder.reason)
    if written and recorder.reason != "tool-calls":
        await run_db(scoring.start, run)


def record_cancelled(performance: RunExecution) -> None:
    """Somebody stopped the run, or the process ends."""
    if performance.engine.is_stopping:
        fail(performance, leases.LOST)
    else:
        performance.close(chunk("abort"), status=Status.CANCELLED)


def record_failure(performance: RunExecution, error: Exception) -> None:
    told = to_storable_json(failures.sentence(error, performance.model))
    if failures.is_known(error):
        log.warning("Run %s failed: %s", performance.run_id, told)  # not the error itself, which may quote a key
    else:
        log.error("Run %s failed.", performance.run_id, exc_info=error)
    fail(performance, told)


def fail(performance: RunExecution, told: str) -> None:
    last = chunk("error", error={"name": "Error", "message": told})
    performance.close(last, status=Status.FAILED, finish_reason="error", error=told)


# --- What happens in between


async def answer(performance: RunExecution, run: AgentRun, family: RunTree) -> None:
    built: BuiltAgent = await run_db(ResolvedAgent.from_run(run).build)
    performance.model = built.model_name
    warned = [warning._asdict() for warning in built.warnings]
    performance.columns = {"warnings": warned, "is_demo": built.is_demo}
    performance.recorder.add(chunk("start", id=run.agent_key, messageId=str(run.pk), warnings=warned))
    async with model_run_context(performance.engine, run, built, family) as model_run:
        performance.model_run = model_run
        await follow(model_run, performance.recorder)
    if isinstance(model_run.result.output, str):
        performance.columns["output"] = to_storable_json(model_run.result.output)


def model_run_context(engine: Engine, run: AgentRun, built: BuiltAgent, family: RunTree) -> Any:
    """The run of pydantic-ai, as an async context."""
    options = merge(built.options, run.input.get("options") or {})
    running = Running(
        run_id=run.pk,
        agent_key=run.agent_key,
        owner_id=run.owner_id,
        user_id=run.requested_by_id,
        ask_sub_agent=family.asker(engine, run),
        thread_id=run.thread_id,
        visited=family.visited,
        options=options,
    )
    prompt, history = prompt_and_history(run.input["messages"])
    return built.agent.iter(
        prompt,
        message_history=history or None,
        deps=running,
        model_settings=model_settings(options),
        usage_limits=usage_limits(options),
        infer_name=False,
        **tools_of_the_caller(run),
    )


def tools_of_the_caller(run: AgentRun) -> dict[str, Any]:
    """A call of one of these ends the run: the caller does it and sends what came of it."""
    given = run.input.get("clientTools") or []
    if not given:
        return {}
    return {
        "toolsets": [ExternalToolset(client_tools(given), id="client-tools")],
        "output_type": [str, DeferredToolRequests],
    }


async def follow(model_run: ModelRun[Running, Any], recorder: Recorder) -> None:
    """Walk through the steps and record what happens in each."""
    async for node in model_run:
        if Agent.is_model_request_node(node):
            recorder.begin_step()
            await record(node, model_run, recorder)
        elif Agent.is_call_tools_node(node):
            await record(node, model_run, recorder)
            recorder.end_step(node.model_response, calls=bool(node.model_response.tool_calls))


async def record(node: Any, model_run: ModelRun[Running, Any], recorder: Recorder) -> None:
    async with node.stream(model_run.ctx) as events:
        async for event in events:
            recorder.record(event)
