"""The header `Idempotency-Key` in the document."""

from __future__ import annotations

from agentcms.openapi.operations import Operation
from agentcms.wire.json_types import JSONObject

READS = "It only reads."
NOTHING_LEFT = "A repeat finds nothing more to stop. Its response is the present state."
NOT_SUPPORTED = "It is not supported."

# The POSTs that ignore the header, with the reason.
WITHOUT_KEY = {
    "observe": READS,
    "subscribeToThread": READS,
    "awaitBufferStatus": READS,
    "searchKnowledgeBase": READS,
    "queryVectors": READS,
    "compareExperiments": READS,
    "recover": "It reads a run, and a process that is asked twice to continue it does so once.",
    "cancelRun": NOTHING_LEFT,
    "cancelBackgroundTask": NOTHING_LEFT,
    "cancelExperiment": NOTHING_LEFT,
    "finalizeExperiment": NOTHING_LEFT,
    "decideApproval": "It names one call. The same decision by the same user has the same response.",
    "runExperimentItem": "The item of an experiment runs once. A repeat has its result.",
    "readMcpResource": NOT_SUPPORTED,
    "generateDatasetItems": NOT_SUPPORTED,
    "clusterFailures": NOT_SUPPORTED,
}
KEY_PARAMETER: JSONObject = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
    "description": "A new text for each request. A repeat with the same text has the first response.",
}


def takes_key(operation: Operation) -> bool:
    """Return whether an operation supports the header."""
    return operation.method == "post" and operation.id not in WITHOUT_KEY
