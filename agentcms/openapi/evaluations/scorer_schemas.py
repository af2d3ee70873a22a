"""The schemas of scorers, scores and spans."""

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
    nullable,
    object_of,
    page_of,
    ref,
    with_optional_warnings,
)
from agentcms.wire.json_types import JSONObject

SCORE_NUMBER: JSONObject = {"type": "number"}


def scorer_schemas() -> dict[str, JSONObject]:
    span = span_schema()
    return {
        "Scorer": scorer_schema(),
        "ScorerPage": page_of("scorerDefinitions", "Scorer"),
        "ScorerVersion": scorer_version_schema(),
        "ScorerVersionPage": page_of("versions", "ScorerVersion"),
        "ScorerVersionMessage": {"type": "object", "properties": {"changeMessage": STRING}},
        "ScorerComparison": with_optional_warnings(
            object_of(diffs=array_of(OBJECT), fromVersion=ref("ScorerVersion"), toVersion=ref("ScorerVersion"))
        ),
        "ScorerLive": object_of(success=BOOLEAN, message=STRING, activeVersionId=UUID_STRING),
        "UsableScorer": usable_scorer_schema(),
        "UsableScorers": {"type": "object", "additionalProperties": ref("UsableScorer")},
        "Score": stored_score_schema(),
        "ScoreCreated": object_of(score=ref("Score")),
        "ScorePage": score_page("Score"),
        "ObservedScore": observed_score_schema(),
        "ObservedScorePage": score_page("ObservedScore"),
        "Span": span,
        "SpanPage": with_optional_warnings(object_of(spans=array_of(ref("Span")), pagination=PAGINATION)),
        "SpanResponse": object_of(span=ref("Span")),
        "Trace": object_of(traceId=STRING, spans=array_of(ref("Span"))),
        "Trajectory": object_of(steps=array_of(OBJECT)),
    }


def score_page(score: str) -> JSONObject:
    return with_optional_warnings(object_of(scores=array_of(ref(score)), pagination=PAGINATION))


def scorer_schema() -> JSONObject:
    schema = object_of(
        id=STRING,
        ownerId=STRING,
        status={"enum": ["published", "draft"]},
        activeVersionId=nullable(UUID_STRING),
        versionNumber=nullable(INTEGER),
        authorId=nullable(STRING),
        metadata=OBJECT,
        createdAt=DATE_TIME,
        updatedAt=DATE_TIME,
        name=STRING,
        type=STRING,
    )
    schema["properties"] |= SCORER_CONFIGURATION
    return schema


SCORER_CONFIGURATION: dict[str, JSONObject] = {
    "description": nullable(STRING),
    "model": nullable(OBJECT),
    "instructions": nullable(STRING),
    "scoreRange": nullable(OBJECT),
    "passThreshold": nullable(SCORE_NUMBER),
    "outputSchema": nullable(OBJECT),
    "presetConfig": nullable(OBJECT),
    "defaultSampling": nullable(OBJECT),
}


def scorer_version_schema() -> JSONObject:
    schema = object_of(
        id=UUID_STRING,
        scorerDefinitionId=STRING,
        versionNumber=INTEGER,
        changedFields=array_of(STRING),
        changeMessage=STRING,
        author=nullable(STRING),
        createdAt=DATE_TIME,
        name=STRING,
        type=STRING,
    )
    schema["properties"] |= SCORER_CONFIGURATION
    return schema


def usable_scorer_schema() -> JSONObject:
    return object_of(
        scorer=OBJECT,
        agentIds=array_of(STRING),
        agentNames=array_of(STRING),
        workflowIds=array_of(STRING),
        isRegistered=BOOLEAN,
        source={"enum": ["code", "stored"]},
    )


def stored_score_schema() -> JSONObject:
    schema = object_of(
        **dict.fromkeys(("id", "scorerId", "entityId", "entityType"), STRING),
        **dict.fromkeys(("scorer", "entity"), OBJECT),
        scorerVersion=nullable(INTEGER),
        runId=UUID_STRING,
        traceId=nullable(STRING),
        source={"enum": ["LIVE", "TEST", "PERSON"]},
        **dict.fromkeys(("score", "cost"), nullable(SCORE_NUMBER)),
        **dict.fromkeys(("label", "reason", "error", "createdBy"), nullable(STRING)),
        usage=nullable(OBJECT),
        **dict.fromkeys(("details", "input", "output"), ANY),
        **dict.fromkeys(("createdAt", "updatedAt"), DATE_TIME),
    )
    schema["properties"] |= {"resultId": UUID_STRING, "itemId": UUID_STRING, "submitted": BOOLEAN}
    return schema


def observed_score_schema() -> JSONObject:
    """Return the schema of a score with the names of the observability API."""
    schema = stored_score_schema()
    names = ("scoreId", "scorerName", "scoreSource", "entityName")
    added = {**dict.fromkeys(names, STRING), "timestamp": DATE_TIME, "metadata": nullable(OBJECT)}
    schema["properties"] |= {**added, "scorerVersion": nullable(STRING)}
    schema["required"] = [*schema["required"], *added]
    return schema


def span_schema() -> JSONObject:
    schema = object_of(
        traceId=STRING,
        spanId=STRING,
        parentSpanId=nullable(STRING),
        name=STRING,
        spanType=STRING,
        entityType=STRING,
        entityId=STRING,
        entityName=STRING,
        runId=STRING,
        isEvent=BOOLEAN,
        startedAt=DATE_TIME,
        endedAt=nullable(DATE_TIME),
        status=STRING,
        createdAt=DATE_TIME,
        updatedAt=nullable(DATE_TIME),
    )
    schema["properties"] |= dict.fromkeys(("input", "output", "error", "attributes", "metadata"), ANY)
    return schema
