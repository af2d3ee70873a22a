"""The schemas of experiments, their results and release gates."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    OBJECT,
    PAGINATION,
    STRING,
    UUID_STRING,
    array_of,
    body_of,
    nullable,
    object_of,
    paged_schema,
    ref,
)
from agentcms.wire.json_types import JSONObject
from evals_app.models import Comparison

SCORE: JSONObject = {"type": "number"}


def experiment_schemas() -> dict[str, JSONObject]:
    experiment = experiment_schema()
    counts = object_of(
        experimentId=UUID_STRING, total=INTEGER, needsReview=INTEGER, reviewed=INTEGER, complete=INTEGER
    )
    created = object_of(**experiment["properties"], experimentId=UUID_STRING, results=array_of(OBJECT))
    return {
        "Experiment": experiment,
        "ExperimentCreated": created,
        "ExperimentPage": paged_schema("experiments", "Experiment"),
        "ExperimentResult": result_schema(),
        "ExperimentResultPage": paged_schema("results", "ExperimentResult"),
        "ItemRan": object_of(result=ref("ExperimentResult"), scores=array_of(score_schema())),
        "ExperimentComparison": object_of(
            baselineId=UUID_STRING,
            state={"enum": Comparison.State.values},
            differingScorerVersions=OBJECT,
            statistics=nullable(OBJECT),
            items=array_of(object_of(itemId=UUID_STRING, input=ANY, groundTruth=ANY, results=OBJECT)),
            pagination=PAGINATION,
        ),
        "Gate": gate_schema(),
        "Gates": object_of(gates=array_of(gate_state_schema()), versionNumber=INTEGER),
        "ReviewSummary": object_of(counts=array_of(counts)),
    }


def experiment_schema() -> JSONObject:
    texts = dict.fromkeys(("targetType", "targetId", "experimentSetId", "comparisonId", "variantId"), nullable(STRING))
    counts = ("totalItems", "succeededCount", "failedCount", "skippedCount", "concurrency", "repeats")
    return object_of(
        id=UUID_STRING,
        datasetId=STRING,
        agentVersion=nullable(UUID_STRING),
        **dict.fromkeys(("agentVersionNumber", "seed"), nullable(INTEGER)),
        **texts,
        scorerIds=nullable(array_of(STRING)),
        **dict.fromkeys(("name", "description"), STRING),
        metadata=OBJECT,
        provenance=nullable(OBJECT),
        trialIndex=nullable(INTEGER),
        status={"enum": ["pending", "running", "completed", "failed"]},
        **dict.fromkeys(("datasetVersion", *counts), INTEGER),
        **dict.fromkeys(("memory", "budget", "bars", "summary"), OBJECT),
        gateScorers=array_of(STRING),
        **dict.fromkeys(("verdict", "stopReason", "author"), nullable(STRING)),
        submitted=BOOLEAN,
        **dict.fromkeys(("startedAt", "completedAt"), nullable(DATE_TIME)),
        **dict.fromkeys(("createdAt", "updatedAt"), DATE_TIME),
    )


def score_schema() -> JSONObject:
    required = {
        "scorerId": STRING,
        "scorerName": STRING,
        "score": nullable(SCORE),
        "reason": nullable(STRING),
        "error": nullable(STRING),
    }
    return body_of(
        required,
        label=nullable(STRING),
        version=nullable(INTEGER),
        details=nullable(OBJECT),
        usage=nullable(OBJECT),
        cost=nullable(SCORE),
        metadata=OBJECT,
    )


def result_schema() -> JSONObject:
    return object_of(
        **dict.fromkeys(("id", "experimentId", "itemId"), UUID_STRING),
        itemDatasetVersion=INTEGER,
        **dict.fromkeys(("input", "output", "groundTruth"), ANY),
        **dict.fromkeys(("metadata", "expectedTrajectory", "error"), nullable(OBJECT)),
        startedAt=DATE_TIME,
        completedAt=DATE_TIME,
        state=STRING,
        durationMs=nullable(INTEGER),
        tokens=nullable(INTEGER),
        cost=nullable(SCORE),
        retryCount=INTEGER,
        attempt=INTEGER,
        traceId=nullable(STRING),
        scores=array_of(score_schema()),
        submitted=BOOLEAN,
        status=nullable(STRING),
        tags=array_of(STRING),
        comment=nullable(STRING),
        toolMockReport=nullable(OBJECT),
        createdAt=DATE_TIME,
    )


def gate_schema() -> JSONObject:
    return object_of(
        id=UUID_STRING,
        agentId=nullable(STRING),
        allAgents=BOOLEAN,
        **dict.fromkeys(("ownerId", "datasetId", "scorer", "statistic", "mode"), STRING),
        datasetVersion=nullable(INTEGER),
        **dict.fromkeys(("min", "max"), nullable(SCORE)),
        maxFailed=INTEGER,
        maxAgeDays=nullable(INTEGER),
        **dict.fromkeys(("createdAt", "updatedAt"), DATE_TIME),
    )


def gate_state_schema() -> JSONObject:
    return object_of(
        **gate_schema()["properties"],
        met=BOOLEAN,
        message=STRING,
        warning=nullable(STRING),
        value=nullable(SCORE),
        experimentId=nullable(UUID_STRING),
    )
