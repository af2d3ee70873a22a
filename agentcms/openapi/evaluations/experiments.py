"""The operations and schemas of experiments and their results."""

from __future__ import annotations

from agentcms.openapi.evaluations.datasets import DATASET
from agentcms.openapi.evaluations.experiment_schemas import experiment_schemas
from agentcms.openapi.json_schema import STRING, array_of, order_query
from agentcms.openapi.operations import PAGING, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import as_partial
from evals_app.api.comparisons import CompareBody
from evals_app.experiments.options import ExperimentBody, ExperimentChange, ItemRun, ResultChange, SubmittedResult
from evals_app.gates.schema import GateBody

EXPERIMENTS = f"{DATASET}/experiments"
EXPERIMENT = f"{EXPERIMENTS}/{{experimentId}}"
GATES = "/api/stored/agents/{agentId}/gates"
EXPERIMENT_FILTERS = (
    "targetType",
    "targetId",
    "experimentSetId",
    "comparisonId",
    "variantId",
    "trialIndex",
    "experimentOrder",
)

EXPERIMENT_OPERATIONS = (
    Operation(
        "get",
        EXPERIMENTS,
        "listDatasetExperiments",
        "List the experiments over a dataset",
        "ExperimentPage",
        query=(*PAGING, *EXPERIMENT_FILTERS, "strict"),
    ),
    Operation(
        "post",
        EXPERIMENTS,
        "createExperiment",
        "Create and start an experiment",
        "ExperimentCreated",
        "ExperimentCreate",
        status=201,
        query=("strict",),
    ),
    Operation("get", EXPERIMENT, "getExperiment", "Get an experiment", "Experiment"),
    Operation(
        "patch",
        EXPERIMENT,
        "updateExperiment",
        "Rename an experiment",
        "Experiment",
        "ExperimentChange",
        query=("strict",),
    ),
    Operation("delete", EXPERIMENT, "deleteExperiment", "Delete an experiment with its results", "Done"),
    Operation(
        "get",
        f"{EXPERIMENT}/results",
        "listExperimentResults",
        "List the results of an experiment",
        "ExperimentResultPage",
        query=(*PAGING, "tags", "resultOrder", "strict"),
    ),
    Operation(
        "post",
        f"{EXPERIMENT}/results",
        "submitExperimentResult",
        "Submit a result",
        "ExperimentResult",
        "SubmittedResult",
        status=201,
        query=("strict",),
    ),
    Operation(
        "patch",
        f"{EXPERIMENT}/results/{{resultId}}",
        "updateExperimentResult",
        "Review a result",
        "ExperimentResult",
        "ResultChange",
        query=("strict",),
    ),
    Operation(
        "post",
        f"{EXPERIMENT}/items/{{itemId}}/run",
        "runExperimentItem",
        "Run one item",
        "ItemRan",
        "ItemRun",
        query=("strict",),
    ),
    Operation(
        "post", f"{EXPERIMENT}/finalize", "finalizeExperiment", "End an experiment", "Experiment", query=("strict",)
    ),
    Operation(
        "get",
        "/api/experiments",
        "listExperiments",
        "List experiments",
        "ExperimentPage",
        query=(*PAGING, *EXPERIMENT_FILTERS, "strict"),
    ),
    Operation(
        "post",
        f"{DATASET}/compare",
        "compareExperiments",
        "Compare two experiments",
        "ExperimentComparison",
        "CompareExperiments",
        query=(*PAGING, "strict"),
    ),
    Operation("get", GATES, "listGates", "List the release gates of an agent", "Gates"),
    Operation("post", GATES, "createGate", "Add a release gate", "Gate", "GateCreate", status=201, query=("strict",)),
    Operation(
        "patch", f"{GATES}/{{gateId}}", "updateGate", "Change a release gate", "Gate", "GateChange", query=("strict",)
    ),
    Operation("delete", f"{GATES}/{{gateId}}", "deleteGate", "Delete a release gate", "Done"),
    Operation("get", "/api/experiments/review-summary", "getReviewSummary", "Count the reviews", "ReviewSummary"),
    Operation(
        "delete", "/api/experiments/{experimentId}", "deleteAnyExperiment", "Delete an experiment by its ID", "Done"
    ),
    Operation(
        "post",
        "/api/experiments/{experimentId}/cancel",
        "cancelExperiment",
        "Cancel an experiment",
        "Experiment",
        query=("strict",),
    ),
    Operation(
        "get",
        "/api/experiments/{experimentId}/stream",
        "streamExperiment",
        "Stream the progress of an experiment",
        "Events",
    ),
)

EXPERIMENT_DESCRIPTIONS: dict[str, str] = {
    "listDatasetExperiments": "The newest first, unless ordered otherwise.",
    "createExperiment": "Answers at once. A job runs each item. With start: false, you run items or submit results.",
    "getExperiment": "With its counts, and the figures of each scorer once it has ended.",
    "updateExperiment": "Only its name, description and metadata can change.",
    "deleteExperiment": "Needs the publisher role. Stops it first.",
    "listExperimentResults": "In the order in which the items started.",
    "submitExperimentResult": "Replaces an earlier result of the item and attempt. Such results meet no gate.",
    "updateExperimentResult": "Sets the status, tags and comment of people.",
    "runExperimentItem": "Waits for the answer and its scores. Repeating it returns the same result.",
    "finalizeExperiment": "Counts the results. Repeating it changes nothing.",
    "listExperiments": "Those over the datasets that you may see.",
    "compareExperiments": (
        "Answers at once. The statistics are null until a job has computed them. The items that got worse come "
        "first, in pages of 1000 unless perPage is smaller."
    ),
    "listGates": "With what its draft, or else its live version, is missing. Those of its team are included.",
    "createGate": "Needs the manager role.",
    "updateGate": "Needs the manager role. Changes the named fields.",
    "deleteGate": "Needs the manager role.",
    "streamExperiment": "An event for each change. The last one has the type finished.",
    "getReviewSummary": "Counts the results of each experiment by their review.",
    "deleteAnyExperiment": "Needs the publisher role. Stops it first.",
    "cancelExperiment": "No new item starts, open runs are stopped, and results stay.",
}
EXPERIMENT_PARAMETERS: dict[str, JSONObject] = {
    "datasetId": {"description": "The ID of the dataset.", "example": "support-questions"},
    "experimentId": {"description": "The ID of the experiment.", "example": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a11"},
    "gateId": {"description": "The ID of the gate.", "example": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a14"},
    "resultId": {"description": "The ID of the result.", "example": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a12"},
    "itemId": {"description": "The ID of the item.", "example": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a13"},
    "targetType": {"description": "Only experiments over targets of this type."},
    "targetId": {"description": "Only experiments over this target."},
    "experimentSetId": {"description": "Only experiments of this set."},
    "comparisonId": {"description": "Only experiments of this comparison."},
    "variantId": {"description": "Only experiments of this variant."},
    "trialIndex": {"description": "Only experiments of this trial."},
    "tags": {"description": "Only results that have all of these tags."},
}
EXPERIMENT_QUERY: dict[str, JSONObject] = {
    "experimentOrder": order_query("createdAt", "status"),
    "resultOrder": order_query("startedAt", "createdAt"),
    "trialIndex": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}},
    "tags": {"schema": array_of(STRING)},
}
EXPERIMENT_EXAMPLES: dict[str, JSONObject] = {
    "createExperiment": {"targetType": "agent", "targetId": "concierge", "agentVersion": "draft", "maxConcurrency": 4},
    "updateExperiment": {"name": "Before the release"},
    "submitExperimentResult": {
        "itemId": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a13",
        "output": "At nine.",
        "scores": [{"scorerId": "exact", "score": 1}],
    },
    "updateExperimentResult": {"status": "needs-review", "comment": "The hours are wrong."},
    "runExperimentItem": {"attempt": 0},
    "compareExperiments": {
        "experimentIdA": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a11",
        "experimentIdB": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a12",
    },
}
EXPERIMENT_FIELDS: dict[str, str] = {
    "description": "What the experiment is for.",
    "differingScorerVersions": "The versions, by scorer, where the two experiments were scored by different ones.",
    "experiments": "The experiments of the page.",
    "experimentId": "The ID of the experiment.",
    "agentVersion": "The ID of the version of the agent or scorer. New experiments also take a number, live or draft.",
    "agentVersionNumber": "The number of the version of the agent or scorer. Workflows have no versions.",
    "targetType": "What runs the items: agent, workflow or scorer.",
    "targetId": "The ID of the agent or scorer, or the key of the workflow.",
    "provenance": "What you say of the origin of the experiment.",
    "experimentSetId": "A set of experiments, as you named it.",
    "comparisonId": "A comparison, as you named it.",
    "variantId": "A variant, as you named it.",
    "trialIndex": "The number of the trial, as you gave it.",
    "totalItems": "The number of items, with their repeats.",
    "succeededCount": "The number of items with an answer.",
    "failedCount": "The number of items without an answer.",
    "skippedCount": "The number of items that an ended experiment did not run.",
    "concurrency": "How many items run at once.",
    "maxConcurrency": "How many items run at once: 1 to 20, by default 4.",
    "repeats": "How often each item runs: 1 to 10.",
    "seed": "The seed that the model gets, plus 0, 1, 2 … for each repeat of an item. Null: the model chooses.",
    "budget": "Where the experiment stops: maxCost, maxTokens, maxFailures, maxConsecutiveFailures.",
    "bars": "The lowest mean of each scorer, on which the verdict depends; the highest where lower scores are better.",
    "summary": "The figures of each scorer, with cost, tokens and durations.",
    "gateScorers": "Scorers that must give each answer a 1, or a 0 if low scores are good.",
    "verdict": (
        "failed: a gate scorer gave less than 1. scored: a bar is missed. passed: neither. An item that failed counts "
        "like a score that is not good enough. Null without both."
    ),
    "stopReason": "Why the experiment ended early, or null.",
    "submitted": "Whether a program outside submitted results. Such results meet no gate.",
    "startedAt": "When it started.",
    "completedAt": "When it ended.",
    "results": "The results of the page. Empty for an experiment that has just begun.",
    "itemId": "The ID of the item.",
    "itemDatasetVersion": "The version of the dataset with which the item got this content.",
    "output": "The answer.",
    "tokens": "The tokens that the run and its sub-agents used, without those of judges.",
    "durationMs": "How long the run took, in milliseconds.",
    "retryCount": "How often the item ran again because its process died.",
    "attempt": "The number of the repeat, from 0.",
    "traceId": "The ID of the run, or the one that was submitted.",
    "scores": "The scores of the answer.",
    "scorerId": "The key of the scorer.",
    "scorerName": "The name of the scorer.",
    "score": "The score, or null without one.",
    "comment": "What people say of the result.",
    "toolMockReport": "Which mocks answered calls of tools, and which calls had none.",
    "counts": "The counts of each experiment.",
    "needsReview": "Results that need a review.",
    "reviewed": "Results that were reviewed.",
    "complete": "Results whose review is complete.",
    "ItemRan.result": "The result of the item.",
    "ReviewSummary.total": "All results of the experiment.",
    "start": "With false, a program outside runs the items or submits the results.",
    "grouping": "Your own dimensions of repeated experiments.",
    "versions": "Accepted for the published client.",
    "ExperimentCreate.version": "The version of the dataset. By default the current one.",
    "ExperimentCreate.id": "Your own UUID of the experiment. Repeating it returns the same experiment.",
    "ExperimentCreate.memory": "The thread and the resource of the runs. The thread per-item means one for each.",
    "Experiment.memory": "The thread and the resource of the runs.",
    "state": "Whether the item still runs.",
    "gates": "The gates.",
    "agentId": "The ID of the agent. Null for a gate of all agents of a team.",
    "allAgents": "Whether the gate holds for all agents of the team.",
    "Gates.versionNumber": "The number of the version that was checked.",
    "scorer": "The key of the scorer.",
    "statistic": "What is compared: mean, pass_rate, min, or difference_to_live.",
    "min": "The lowest value with which a version may go live.",
    "max": "The highest value with which a version may go live.",
    "maxFailed": "How many items may fail. Each repeat of an item counts.",
    "maxAgeDays": "How old the experiment may be.",
    "mode": "enforce refuses a version, warn only says so.",
    "met": "Whether the version meets the gate.",
    "Gates.message": "What the gate asks for, and what the last experiment scored.",
    "warning": "What changed since the experiment, or null.",
    "value": "The value of the last experiment, or null.",
    "experimentIdA": "The experiment to compare with.",
    "experimentIdB": "The experiment that may be better.",
    "again": "True computes a comparison again that failed.",
    "baselineId": "The experiment to compare with.",
    "ExperimentComparison.state": "pending until a job has computed the statistics, then done; failed if it cannot.",
    "statistics": "For each scorer: means, the difference with its interval, tests, counts and a sentence.",
    "ExperimentComparison.items": "Each item with both answers. What got worse is first.",
    "ExperimentComparison.results": "By ID of the experiment: the answer, its scores, and whether it was submitted.",
}


EXPERIMENT_SECTION = ApiSection(
    EXPERIMENT_OPERATIONS,
    {"": "Evaluations"},
    experiment_schemas,
    bodies={
        "ExperimentCreate": ExperimentBody,
        "ExperimentChange": ExperimentChange,
        "SubmittedResult": SubmittedResult,
        "ResultChange": ResultChange,
        "ItemRun": ItemRun,
        "CompareExperiments": CompareBody,
        "GateCreate": GateBody,
        "GateChange": as_partial(GateBody),
    },
    descriptions=EXPERIMENT_DESCRIPTIONS,
    parameters=EXPERIMENT_PARAMETERS,
    query=EXPERIMENT_QUERY,
    examples=EXPERIMENT_EXAMPLES,
    fields=EXPERIMENT_FIELDS,
)
