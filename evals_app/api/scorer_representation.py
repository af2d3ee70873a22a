"""Scorers, their versions and scores in the API."""

from __future__ import annotations

from agentcms.wire.json_types import JSONObject
from agents_app.registry import Entry
from evals_app.models import Experiment, Scorer, ScorerVersion
from evals_app.quality.experiment_scores import ExperimentScore
from runs_app.models import AgentRun, Score


def scorer_body(row: Scorer, shows_draft: bool = False) -> JSONObject:
    """Return a scorer with its live configuration, or that of its newest version."""
    version = row.head if shows_draft or row.live is None else row.live
    return {
        **(version.snapshot if version else {}),
        "id": row.pk,
        "ownerId": row.owner_id,
        "status": "published" if row.live_id else "draft",
        "activeVersionId": row.live_id,
        "versionNumber": version.version_number if version else None,
        "authorId": row.created_by or None,
        "metadata": row.metadata,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
    }


def scorer_version_body(version: ScorerVersion) -> JSONObject:
    return {
        **version.snapshot,
        "id": version.pk,
        "scorerDefinitionId": version.scorer_id,
        "versionNumber": version.version_number,
        "changedFields": version.changed_fields,
        "changeMessage": version.change_message,
        "author": version.author_name or None,
        "createdAt": version.created_at,
    }


def usable_scorer_body(entry: Entry, agents: list[tuple[str, str]]) -> JSONObject:
    """Return a scorer that agents can use, with those that do."""
    config = {"id": entry.key, "name": entry.title, "description": entry.description}
    return {
        "scorer": {"config": config},
        "agentIds": [key for key, _ in agents],
        "agentNames": [name for _, name in agents],
        "workflowIds": [],
        "isRegistered": True,
        "source": "code" if entry.source == "code" else "stored",
    }


def score_body(score: Score) -> JSONObject:
    run: AgentRun = score.run
    return {
        "id": str(score.pk),
        "scorerId": score.scorer,
        "scorer": {"id": score.scorer, "name": score.scorer},
        "scorerVersion": score.scorer_version,
        "entityId": run.agent_key,
        "entityType": "AGENT",
        "entity": {"id": run.agent_key, "name": run.agent_key},
        "runId": run.pk,
        "traceId": run.pk,
        "source": score.source,
        **score_values(score),
        "createdBy": score.created_by.get_username() if score.created_by else None,
        "input": run.input["messages"],
        "output": run.output,
        "createdAt": score.created_at,
        # Nothing changes a score later.
        "updatedAt": score.created_at,
    }


def observed_score_body(score: Score) -> JSONObject:
    """Return a score of a trace, with the names that the observability API of the published client has."""
    version = score.scorer_version
    return {
        **score_body(score),
        "scoreId": str(score.pk),
        "timestamp": score.created_at,
        "scorerName": score.scorer,
        "scorerVersion": None if version is None else str(version),
        "scoreSource": score.source,
        "entityType": "agent",
        "entityName": score.run.agent_key,
        "metadata": score.details if isinstance(score.details, dict) else None,
    }


def experiment_score_body(experiment: Experiment, score: ExperimentScore) -> JSONObject:
    """Return a score of an experiment, whose ID the published client expects as that of the run."""
    result, entry = score.result, score.entry
    key = entry["scorerId"]
    values = ("score", "label", "reason", "details", "error", "usage", "cost")
    return {
        "id": f"{result.pk}-{score.place}",  # the score is in its result, and has no row
        "scorerId": key,
        "scorer": {"id": key, "name": entry.get("scorerName") or key},
        "scorerVersion": entry.get("version"),
        "entityId": experiment.target_id,
        "entityType": experiment.target_type.upper(),
        "entity": {"id": experiment.target_id, "name": experiment.target_id},
        "runId": experiment.pk,
        "traceId": result.run_key or result.trace_id or None,
        "source": Score.Source.TEST,
        **{name: entry.get(name) for name in values},
        "createdBy": None,
        "input": result.effective_input,
        "output": result.output,
        "resultId": result.pk,
        "itemId": result.item_id,
        "submitted": result.is_submitted,
        "createdAt": result.completed_at,
        "updatedAt": result.completed_at,
    }


def score_values(score: Score) -> JSONObject:
    return {
        "score": score.score,
        "label": score.label or None,
        "reason": score.reason or None,
        "details": score.details,
        "error": score.error or None,
        "usage": score.usage,
        "cost": None if score.cost is None else float(score.cost),
    }
