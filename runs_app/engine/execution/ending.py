"""The ends of a run: success, suspension, failure, cancellation, or the hand-over to another process."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.db.models import F
from django.db.models.expressions import Combinable
from pydantic_ai.run import AgentRunResult

from agentcms.wire.json_types import JSONObject
from runs_app.approvals.deferred_requests import waits_for_calls
from runs_app.approvals.segments import dump_conversation, pending_calls
from runs_app.approvals.suspending import report_suspension
from runs_app.engine import failures, run_ends
from runs_app.engine.execution.state import PreparedRun, RunExecution
from runs_app.engine.thread_pools import run_briefly, run_db
from runs_app.events.pending_runs import RunEnd
from runs_app.events.stream_chunks import SUSPENDED_TYPE, build_chunk, to_storable_json
from runs_app.models import AgentRun, PendingCall
from runs_app.response_cache.store import delete_answers
from runs_app.scoring import find_scoring, send_scoring_job

log = logging.getLogger(__name__)


async def record_output(execution: RunExecution, run: AgentRun) -> None:
    """Record the end of the run, or its suspension until people decide calls of tools."""
    result = execution.model_run.result if execution.model_run else None
    if execution.prepared is not None and result is not None and waits_for_calls(result.output):
        try:
            await record_suspension(execution, execution.prepared, run, result)
        except Exception as error:
            record_failure(execution, error)
    else:
        await record_success(execution, run)


async def record_suspension(
    execution: RunExecution, prepared: PreparedRun, run: AgentRun, result: AgentRunResult[Any]
) -> None:
    """Write the calls for which the run waits, with all that the next segment needs. No process executes it then."""
    calls = pending_calls(run, result.output, execution.segment, prepared.built.tools)
    report = await run_db(report_suspension, calls)
    if prepared.deps.answer_keys:
        await run_briefly(delete_answers, prepared.deps.answer_keys)
    conversation = conversation_so_far(execution, prepared, calls, result)
    # In one commit: who sees the end of the segment must find the calls, or could decide none.
    with execution.engine.writer.one_commit():
        for chunk in report.chunks:
            execution.recorder.add(chunk)
        is_written = execution.close(
            build_chunk(SUSPENDED_TYPE),
            status=AgentRun.Status.SUSPENDED,
            calls=calls,
            reported=report.below,
            conversation=conversation,
            expires_at=min((call.expires_at for call in calls if call.expires_at is not None), default=None),
            worked_ms=execution.worked_ms,
            output="",
        )
    await is_written


def conversation_so_far(
    execution: RunExecution, prepared: PreparedRun, calls: Iterable[PendingCall], result: AgentRunResult[Any]
) -> JSONObject:
    """Return what the next segment of a run continues with."""
    return dump_conversation(
        result.all_messages(),
        result.usage,
        steps=execution.recorder.steps,
        remembered_count=prepared.deps.remembered_count,
        call_uses=execution.journal.uses_without(calls) if execution.journal is not None else {},
    )


async def record_success(execution: RunExecution, run: AgentRun) -> None:
    finish_reason = finish_reason_of_run(execution)
    usage = execution.usage
    last = build_chunk(
        "finish",
        stepResult={"reason": finish_reason, "isContinued": False, "warnings": []},
        output={"usage": usage},
        usage=usage,
        metadata={"modelId": execution.model, **execution.recorder.metadata},
        messages={"all": [], "user": [], "nonUser": []},
        # Also those that came up since the start, as `generate` gives them.
        warnings=execution.memory_columns.get("warnings", []),
    )
    columns: RunEnd = {"status": AgentRun.Status.SUCCEEDED, "finish_reason": finish_reason}
    # A call of a tool of the client is not an answer. Experiments score themselves.
    is_answer = finish_reason != "tool-calls" and run.experiment_id is None
    if is_answer and (scoring := find_scoring(run)) is not None:
        columns["scoring"] = scoring
    # In one commit: a process that continues the run would record the object again.
    with execution.engine.writer.one_commit():
        if execution.answer is not None:
            execution.recorder.add(build_chunk("object-result", object=execution.answer))
        is_written = execution.close(last, **columns)
    if await is_written and "scoring" in columns:
        await run_db(send_scoring_job, columns["scoring"].job_id)


def finish_reason_of_run(execution: RunExecution) -> str:
    """Return the finish reason of the last step, or `stop` for one that ended the run with calls of its own tools.

    For `tool-calls`, the API client would wait for calls that it has to execute.
    """
    is_stopped = execution.prepared is not None and execution.prepared.deps.is_stopped
    reason = execution.recorder.finish_reason
    return "stop" if reason == "tool-calls" and (is_stopped or execution.answer is not None) else reason


def record_cancelled(execution: RunExecution) -> None:
    """Record that a user cancelled the run, or that the process stops."""
    if execution.is_lost or execution.is_interrupted:
        hand_over(execution)
    elif execution.engine.is_stopping:
        close_failed(execution, run_ends.LOST_MESSAGE)
    else:
        execution.close(build_chunk("abort"), status=AgentRun.Status.CANCELLED)


def hand_over(execution: RunExecution, attempts: Combinable | None = None) -> None:
    """Queue the durable run for another process, unless one has claimed it.

    A process that only missed a renewal still owns the run, and would renew the lease for ever without a task.
    """
    execution.engine.writer.hand_over(execution.run_id, execution.worked_ms, attempts)


def record_failure(execution: RunExecution, error: Exception) -> None:
    if execution.is_lost:
        hand_over(execution)
        return
    if execution.is_durable and failures.is_database_outage(error):
        log.warning("Run %s is queued again, because the database was unavailable: %s", execution.run_id, error)
        hand_over(execution, attempts=F("attempts") + 1)  # so that an error that repeats itself ends the run
        return
    if execution.is_interrupted:
        hand_over(execution)
        return
    message = to_storable_json(failures.run_failure_message(error, execution.model))
    if failures.is_expected(error):
        # Log neither the error nor the message for users: both quote the provider, which quotes keys and prompts.
        log.warning("Run %s failed: %s", execution.run_id, failures.log_message(error, execution.model))
    else:
        log.error("Run %s failed.", execution.run_id, exc_info=error)
    close_failed(execution, message)


def close_failed(execution: RunExecution, message: str) -> None:
    last = build_chunk("error", error={"name": "Error", "message": message})
    execution.close(last, status=AgentRun.Status.FAILED, finish_reason="error", error=message)
