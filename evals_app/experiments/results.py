"""The results of runs of an experiment that have ended."""

from __future__ import annotations

import json
from typing import Any

from django.utils import timezone

from agents_app.configuration.schema import JSONObject
from evals_app.datasets.purging import purge_results
from evals_app.experiments.scoring import score_result, scorer_keys
from evals_app.models import DatasetItem, ExperimentResult
from runs_app.engine.leases import LOST_MESSAGE
from runs_app.models import AgentRun

MAX_RETRIES = 5
STOPPED_CODE, LOST_CODE = "stopped", "lost"


def was_lost(run: AgentRun | None) -> bool:
    """Return whether the process of a run died, so that its item runs again."""
    return run is None or (run.status == AgentRun.Status.FAILED and run.error == LOST_MESSAGE)


def save_result(result: ExperimentResult, run: AgentRun | None) -> bool:
    """Score the answer of a run that has ended, and store both. Return False if another process did so."""
    result.run = run
    fill_from_run(result, run)
    if result.error is None:
        result.scores = score_result(result, scorer_keys(result.experiment, result.item_version))
    return store_result(result)


def store_result(result: ExperimentResult, **unchanged: Any) -> bool:
    """Store the end of a running result. Return False if another process did so, or changed these columns."""
    names = ("output", "error", "duration_ms", "tokens", "cost", "scores", "tool_mock_report", "completed_at")
    rows = ExperimentResult.objects.filter(pk=result.pk, state=ExperimentResult.State.RUNNING, **unchanged)
    values = {name: getattr(result, name) for name in names}
    is_stored = bool(rows.update(state=ExperimentResult.State.DONE, run_id=result.run_id, **values))
    if is_stored and DatasetItem.objects.filter(pk=result.item_id, purged_at__isnull=False).exists():
        purge_results(result.item_id)  # the item was purged while it ran
    return is_stored


def fill_from_run(result: ExperimentResult, run: AgentRun | None) -> None:
    """Set the columns of a result from its run."""
    result.completed_at = timezone.now()
    if run is None:
        result.error = {"message": "The run of this item was deleted before it was scored.", "code": LOST_CODE}
        return
    duration = run.duration
    result.duration_ms = int(duration.total_seconds() * 1000) if duration else None
    result.tokens, result.cost = run.usage.get("totalTokens"), run.cost
    result.completed_at = run.finished_at or result.completed_at
    result.error = run_error(run)
    if result.error is None:
        result.output = output_of(run)
    if result.item_version.tool_mocks:
        result.tool_mock_report = mock_report(run, result.item_version.tool_mocks, result.error)


def output_of(run: AgentRun) -> Any:
    """Return the answer of a run: an object if it was asked for one, else a text."""
    if (run.input.get("options") or {}).get("structuredOutput") or run.configuration.get("structuredOutput"):
        try:
            return json.loads(run.output)
        except ValueError:
            return run.output
    return run.output


def run_error(run: AgentRun) -> JSONObject | None:
    """Return the error of a run, or None if it succeeded."""
    if run.status == AgentRun.Status.SUCCEEDED:
        return None
    if run.status == AgentRun.Status.CANCELLED:
        return {"message": "The run was stopped.", "code": STOPPED_CODE}
    if run.status == AgentRun.Status.SUSPENDED:
        return {"message": "No person is there in an experiment.", "code": "approval_required"}
    if run.error == LOST_MESSAGE:
        return {"message": f"The process of this item died {MAX_RETRIES + 1} times.", "code": LOST_CODE}
    return {"message": run.error or "The run failed."}


def mock_report(run: AgentRun, mocks: list[JSONObject], error: JSONObject | None) -> JSONObject:
    """Return which mocks answered the calls of a run, which were not used, and which calls were live."""
    from runs_app.building.experiment_tools import matches  # imports pydantic-ai, which is heavy

    unused = dict(enumerate(mocks))
    report: JSONObject = {"served": [], "unconsumed": [], "liveCalls": []}
    for call in calls_of(run):
        number = next(
            (n for n, mock in unused.items() if mock["toolName"] == call["toolName"] and matches(mock, call["args"])),
            None,
        )
        if number is None:
            report["liveCalls"].append(call)
        else:
            unused.pop(number)
            report["served"].append({"mockIndex": number, **call})
    report["unconsumed"] = [
        {"mockIndex": number, "toolName": mock["toolName"], "args": mock["args"]} for number, mock in unused.items()
    ]
    if error is not None and report["liveCalls"] and "mock" in error["message"]:
        report["failure"] = {"code": _failure_code(error["message"]), **report["liveCalls"].pop()}
    return report


def _failure_code(message: str) -> str:
    if "used up" in message:
        return "TOOL_MOCK_EXHAUSTED"
    return "TOOL_MOCK_MISMATCH" if "arguments" in message else "TOOL_MOCK_NOT_DECLARED"


def calls_of(run: AgentRun) -> list[JSONObject]:
    """Return the calls of tools of a run in their order."""
    rows = run.events.filter(data__type="tool-call").order_by("number").values_list("data", flat=True)
    payloads = [data.get("payload") or {} for data in rows]
    return [{"toolName": str(call.get("toolName", "")), "args": call.get("args") or {}} for call in payloads]
