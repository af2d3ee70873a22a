"""The operations and schemas of scorers, scores and traces."""

from __future__ import annotations

from agentcms.openapi.evaluations.scorer_schemas import scorer_schemas
from agentcms.openapi.json_schema import STRING, order_query
from agentcms.openapi.operations import PAGING, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import as_partial
from evals_app.api.scores.creation import ScoreBody
from evals_app.api.scores.traces import TraceScoreBody
from evals_app.scorers.schema import ScorerBody

SCORERS = "/api/stored/scorers"
SCORER = f"{SCORERS}/{{scorerId}}"
SCORER_VERSION = f"{SCORER}/versions/{{versionId}}"
TRACES = "/api/observability/traces"
TRACE = f"{TRACES}/{{traceId}}"
SCORE_FILTERS = (*PAGING, "entityId", "entityType", "scoreSource")
RUN_FILTERS = ("traceId", "runId", "entityId", "entityName", "entityType", "threadId", "resourceId", "experimentId")
TRACE_FILTERS = ("startedAt", "endedAt", "dateRange", "spanStatus", "spanType", "traceField", "direction")
OBSERVED_SCORE_FILTERS = ("scorerIds", "scoreSource", "otherSource", "timestamp", "scoreField", "direction")

RANGE_FORM = "{start?, end?, startExclusive?, endExclusive?} in JSON."

SCORER_OPERATIONS = (
    Operation(
        "get",
        SCORERS,
        "listScorers",
        "List stored scorers",
        "ScorerPage",
        query=(*PAGING, "scorerOrder", "authorId", "strict"),
    ),
    Operation("post", SCORERS, "createScorer", "Create a scorer", "Scorer", "ScorerCreate", ("strict",), 201),
    Operation("get", SCORER, "getScorer", "Get a stored scorer", "Scorer", query=("scorerStatus", "strict")),
    Operation("patch", SCORER, "updateScorer", "Change a scorer", "Scorer", "ScorerChange", query=("strict",)),
    Operation("delete", SCORER, "deleteScorer", "Delete a scorer", "Done", errors=(409,)),
    Operation(
        "get",
        f"{SCORER}/versions",
        "listScorerVersions",
        "List the versions of a scorer",
        "ScorerVersionPage",
        query=(*PAGING, "versionOrder", "strict"),
    ),
    Operation(
        "post",
        f"{SCORER}/versions",
        "createScorerVersion",
        "Add a version of the newest configuration",
        "ScorerVersion",
        "ScorerVersionMessage",
        status=201,
        query=("strict",),
    ),
    Operation(
        "get",
        f"{SCORER}/versions/compare",
        "compareScorerVersions",
        "Compare two versions of a scorer",
        "ScorerComparison",
        query=("from", "to", "strict"),
    ),
    Operation("get", SCORER_VERSION, "getScorerVersion", "Get a version of a scorer", "ScorerVersion"),
    Operation("delete", SCORER_VERSION, "deleteScorerVersion", "Delete a version of a scorer", "Done", errors=(409,)),
    Operation(
        "post",
        f"{SCORER_VERSION}/activate",
        "activateScorerVersion",
        "Publish a version of a scorer",
        "ScorerLive",
    ),
    Operation(
        "post",
        f"{SCORER_VERSION}/restore",
        "restoreScorerVersion",
        "Restore a version of a scorer",
        "ScorerVersion",
        status=201,
    ),
    Operation(
        "post", "/api/scores", "createScore", "Score an answer", "ScoreCreated", "ScoreCreate", ("strict",), 201
    ),
    Operation("get", "/api/scores/scorers", "listUsableScorers", "List scorers that agents can use", "UsableScorers"),
    Operation(
        "get", "/api/scores/scorers/{scorerId}", "getUsableScorer", "Get a scorer that agents can use", "UsableScorer"
    ),
    Operation(
        "get",
        "/api/scores/run/{runId}",
        "listRunScores",
        "List the scores of a run",
        "ScorePage",
        query=(*PAGING, "strict"),
    ),
    Operation(
        "get",
        "/api/scores/scorer/{scorerId}",
        "listScorerScores",
        "List the scores by a scorer",
        "ScorePage",
        query=(*SCORE_FILTERS, "strict"),
    ),
    Operation(
        "get",
        "/api/scores/entity/{entityType}/{entityId}",
        "listEntityScores",
        "List the scores of an agent",
        "ScorePage",
        query=(*PAGING, "scoreSource", "strict"),
    ),
    Operation(
        "get",
        TRACES,
        "listTraces",
        "List traces",
        "SpanPage",
        query=(*PAGING, *RUN_FILTERS, *TRACE_FILTERS, "strict"),
    ),
    Operation(
        "get",
        f"{TRACES}/light",
        "listLightTraces",
        "List traces in short",
        "SpanPage",
        query=(*PAGING, *RUN_FILTERS, *TRACE_FILTERS, "strict"),
    ),
    Operation(
        "get",
        "/api/observability/scores",
        "listObservedScores",
        "List all scores",
        "ObservedScorePage",
        query=(*PAGING, *RUN_FILTERS, *OBSERVED_SCORE_FILTERS, "strict"),
    ),
    Operation(
        "post",
        "/api/observability/scores",
        "createTraceScore",
        "Score a trace",
        "Done",
        "TraceScoreCreate",
        ("strict",),
        201,
    ),
    Operation("get", TRACE, "getTrace", "Get a trace", "Trace"),
    Operation("get", f"{TRACE}/light", "getLightTrace", "Get a trace briefly", "Trace"),
    Operation("get", f"{TRACE}/trajectory", "getTrajectory", "Get the steps of a trace", "Trajectory"),
    Operation("get", f"{TRACE}/spans/{{spanId}}", "getSpan", "Get a span", "SpanResponse"),
)

SCORER_DESCRIPTIONS: dict[str, str] = {
    "listScorers": "Those of your teams and the shared ones.",
    "createScorer": "Version 1 is published unless publish is false. The default owner is your only one.",
    "getScorer": "With its live configuration, or the newest one with status=draft.",
    "updateScorer": "Makes a version. It is published unless publish is false; publishing needs the publisher role.",
    "deleteScorer": "Needs the publisher role. Its scores stay. Delete the release gates that use it first.",
    "listScorerVersions": "The newest first, unless orderBy says otherwise.",
    "createScorerVersion": "Marks the newest configuration in the history.",
    "compareScorerVersions": "The fields that differ.",
    "getScorerVersion": "By its ID or number.",
    "deleteScorerVersion": "Neither the live version nor the newest one can be deleted.",
    "activateScorerVersion": "Needs the publisher role.",
    "restoreScorerVersion": "Publishes a new version with the configuration of an earlier one.",
    "createTraceScore": "The ID of a trace is that of its run. Needs the editor role for the owner of the run.",
    "createScore": "A score by a person or a program. Needs the editor role for the owner of the run.",
    "listUsableScorers": "Those in code, and the published ones of your teams, by key.",
    "getUsableScorer": "With the agents that use it.",
    "listRunScores": "The newest first.",
    "listScorerScores": "The newest first.",
    "listEntityScores": "The newest first. The type is AGENT.",
    "listTraces": "A run is a trace. The first span of each, newest first.",
    "listLightTraces": "Without inputs, outputs and attributes.",
    "listObservedScores": "The newest first.",
    "getTrace": "The span of the run, those of its calls of tools, and those of its sub-agents.",
    "getLightTrace": "Without inputs, outputs and attributes.",
    "getTrajectory": "The calls of tools, those of sub-agents inside the call of their agent.",
    "getSpan": "A run or a call of a tool.",
}

SCORER_PARAMETERS: dict[str, JSONObject] = {
    "scorerId": {"description": "The ID of the scorer.", "example": "polite"},
    "versionId": {"description": "The ID or the number of a version.", "example": "2"},
    "entityType": {"description": "The type of the entity: AGENT.", "example": "AGENT"},
    "entityId": {"description": "The ID of the agent.", "example": "concierge"},
    "traceId": {"description": "The ID of the run.", "example": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a11"},
    "spanId": {"description": "The ID of the span.", "example": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a11"},
    "authorId": {"description": "Only scorers that the user with this name has created."},
    "source": {"description": "Only scores from this source."},
    "scoreSource": {"description": "Another name of source."},
    "entityName": {"description": "Another name of entityId."},
    "experimentId": {"description": "Only runs of this experiment."},
    "startedAt": {"description": f"Only traces that began in this range: {RANGE_FORM}"},
    "dateRange": {"description": "Another name of startedAt."},
    "endedAt": {"description": f"Only traces that ended in this range: {RANGE_FORM}"},
    "timestamp": {"description": f"Only scores of this range: {RANGE_FORM}"},
    "spanType": {"description": "The type of the first span. Those of other types than agent_run are none."},
    "field": {"description": "What the order depends on."},
    "direction": {"description": "The direction of the order."},
    "status": {"description": "Which configuration is returned."},
    "from": {"description": "The ID or the number of a version."},
    "to": {"description": "The ID or the number of a version."},
}
SCORER_QUERY: dict[str, JSONObject] = {
    "scorerOrder": order_query("createdAt", "updatedAt"),
    "scorerStatus": {
        "name": "status",
        "schema": {"enum": ["published", "draft", "archived"], "default": "published"},
    },
    "scoreSource": {"name": "source", "schema": STRING},
    "otherSource": {"name": "scoreSource", "schema": STRING},
    "scorerIds": {"name": "scorerId", "schema": STRING, "description": "The ID of a scorer, or a JSON list of them."},
    "spanStatus": {"name": "status", "schema": STRING, "description": "Only traces in this state, such as success."},
    "traceField": {"name": "field", "schema": {"enum": ["startedAt", "endedAt"], "default": "startedAt"}},
    "scoreField": {"name": "field", "schema": {"enum": ["timestamp", "score"], "default": "timestamp"}},
    "direction": {"name": "direction", "schema": {"enum": ["ASC", "DESC"], "default": "DESC"}},
}
SCORER_EXAMPLES: dict[str, JSONObject] = {
    "createScorer": {"name": "Polite", "type": "check", "presetConfig": {"check": "includes", "value": "please"}},
    "updateScorer": {"description": "Looks for a polite word."},
    "createScorerVersion": {"changeMessage": "Before the launch"},
    "createTraceScore": {
        "score": {"traceId": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a11", "scorerId": "polite", "score": 0.5},
    },
    "createScore": {
        "runId": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a11",
        "scorerId": "polite",
        "score": 0.5,
        "reason": "Friendly, but too long.",
    },
}
SCORER_FIELDS: dict[str, str] = {
    "description": "What the scorer measures.",
    "presetConfig": "The settings of a check, a trajectory or a pipeline.",
    "scoreRange": "The lowest and the highest score of a judge.",
    "passThreshold": "The score from which an answer passes.",
    "outputSchema": "The JSON Schema of the judge's answer, with a number `score`.",
    "defaultSampling": "The sampling that agents start with.",
    "ScorerCreate.publish": "Whether the version goes live.",
    "ScorerChange.publish": "Whether the version goes live.",
    "ScorerCreate.instructions": "What a judge looks at, and what its scores mean.",
    "scorerDefinitions": "The scorers of the page.",
    "scorerDefinitionId": "The ID of the scorer.",
    "diffs": "The fields that differ, with both values.",
    "scorerId": "The key of the scorer.",
    "scorerVersion": "The number of the version that scored.",
    "traceId": "The ID of the run.",
    "spanId": "The ID of the span.",
    "spanType": "agent_run or tool_call.",
    "spans": "The spans.",
    "label": "pass, fail or not scorable.",
    "resultId": "The result of an experiment that was scored.",
    "itemId": "The item of an experiment that was scored.",
    "submitted": "Whether a program outside submitted the score of an experiment.",
    "Scorer.authorId": "Who created the scorer.",
    "workflowIds": "Always empty: workflows have no scorers.",
    "isRegistered": "Always true.",
    "span": "The span.",
    "agentIds": "The agents that use the scorer.",
    "agentNames": "The names of these agents.",
}


SCORER_SECTION = ApiSection(
    SCORER_OPERATIONS,
    {"/api/observability": "Traces", "": "Scorers"},
    scorer_schemas,
    bodies={
        "ScorerCreate": ScorerBody,
        "ScorerChange": as_partial(ScorerBody),
        "ScoreCreate": ScoreBody,
        "TraceScoreCreate": TraceScoreBody,
    },
    descriptions=SCORER_DESCRIPTIONS,
    parameters=SCORER_PARAMETERS,
    page_size=10,
    page_sizes={"listScorers": 100, "listScorerVersions": 20},
    query=SCORER_QUERY,
    examples=SCORER_EXAMPLES,
    fields=SCORER_FIELDS,
)
