"""Experiments and their results in the API."""

from __future__ import annotations

from agentcms.wire.json_types import JSONObject
from evals_app.models import Experiment, ExperimentResult

Status = Experiment.Status


def wire_status(experiment: Experiment) -> str:
    """Return the status in the protocol of the client, in which a cancelled experiment has failed."""
    return Status.FAILED if experiment.status == Status.CANCELLED else experiment.status


def experiment_body(experiment: Experiment) -> JSONObject:
    return {
        "id": experiment.pk,
        "datasetId": experiment.dataset_id,
        "datasetVersion": experiment.dataset_version,
        **target_fields(experiment),
        **description_fields(experiment),
        "concurrency": experiment.concurrency,
        "repeats": experiment.repeats,
        "seed": experiment.seed,
        "memory": experiment.memory,
        "budget": experiment.budget,
        "bars": experiment.bars,
        "gateScorers": experiment.gate_scorers or [],
        **outcome_fields(experiment),
        "submitted": experiment.has_submitted_results,
        "author": experiment.created_by_name or None,
        "startedAt": experiment.started_at,
        "completedAt": experiment.completed_at,
        "createdAt": experiment.created_at,
        "updatedAt": experiment.updated_at,
    }


def target_fields(experiment: Experiment) -> JSONObject:
    return {
        "agentVersion": experiment.version_id,
        "agentVersionNumber": experiment.version_number,
        "targetType": experiment.target_type or None,
        "targetId": experiment.target_id or None,
        "scorerIds": experiment.scorer_keys,
    }


def description_fields(experiment: Experiment) -> JSONObject:
    """Return the fields that the caller wrote: names, metadata, and the group of the experiment."""
    # The protocol has no such status: `wire_status` says that the experiment has failed.
    cancelled = {"cancelled": True} if experiment.status == Status.CANCELLED else {}
    return {
        "name": experiment.name,
        "description": experiment.description,
        "metadata": {**experiment.metadata, **cancelled},
        "provenance": experiment.provenance,
        "experimentSetId": experiment.experiment_set_id,
        "comparisonId": experiment.comparison_id,
        "variantId": experiment.variant_id,
        "trialIndex": experiment.trial_index,
    }


def outcome_fields(experiment: Experiment) -> JSONObject:
    return {
        "status": wire_status(experiment),
        "totalItems": experiment.total_items,
        "succeededCount": experiment.succeeded_count,
        "failedCount": experiment.failed_count,
        "skippedCount": skipped_count(experiment),
        "summary": experiment.summary,
        "verdict": experiment.verdict or None,
        "stopReason": experiment.stop_reason or experiment.error or None,
    }


def skipped_count(experiment: Experiment) -> int:
    """Return the number of items that an ended experiment did not run."""
    return max(0, experiment.total_items - experiment.done_count) if experiment.is_finished else 0


def created_body(experiment: Experiment) -> JSONObject:
    """Return the answer to the creation of an experiment."""
    return {
        **experiment_body(experiment),
        "experimentId": experiment.pk,
        "results": [],
    }


def result_body(result: ExperimentResult) -> JSONObject:
    """Return a result. It must come with the version of its item."""
    return {
        "id": result.pk,
        "experimentId": result.experiment_id,
        **item_fields(result),
        "output": result.output,
        "error": result.error,
        "startedAt": result.started_at,
        "completedAt": result.completed_at or result.started_at,
        "state": result.state,
        "durationMs": result.duration_ms,
        "tokens": result.tokens,
        "cost": None if result.cost is None else float(result.cost),
        "retryCount": result.retry_count,
        "attempt": result.attempt,
        "traceId": result.run_key or result.trace_id or None,
        "scores": [result_score_body(entry) for entry in result.scores],
        "submitted": result.is_submitted,
        "status": result.review or None,
        "tags": result.tags,
        "comment": result.comment or None,
        "toolMockReport": result.tool_mock_report,
        "createdAt": result.created_at,
    }


def item_fields(result: ExperimentResult) -> JSONObject:
    return {
        "itemId": result.item_id,
        "itemDatasetVersion": result.item_version.from_version,
        "input": result.effective_input,
        "groundTruth": result.effective_ground_truth,
        "metadata": result.item_version.metadata,
        "expectedTrajectory": result.item_version.expected_trajectory,
    }


def result_score_body(entry: JSONObject) -> JSONObject:
    return {**entry, "scorerName": entry.get("scorerName") or entry["scorerId"]}
