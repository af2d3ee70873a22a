"""The operations and schemas of signals and messages to threads."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    OBJECT,
    STRING,
    body_of,
    nullable,
    object_of,
    with_optional_warnings,
)
from agentcms.openapi.operations import RUNNABLE_AGENT, VERSION_SELECTION, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject


def sending(path: str, name: str, summary: str, body: str) -> Operation:
    query = (*VERSION_SELECTION, "strict")
    return Operation("post", f"{RUNNABLE_AGENT}/{path}", name, summary, "SentSignal", body, query, errors=(409, 429))


SIGNAL_OPERATIONS = (
    sending("signals", "sendSignal", "Send a signal to a thread", "SignalBody"),
    sending("send-message", "sendMessage", "Send a message, which joins the active run", "MessageBody"),
    sending("queue-message", "queueMessage", "Send a message, which gets a run of its own", "MessageBody"),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/threads/subscribe",
        "subscribeToThread",
        "Stream the active run of a thread and all later ones",
        "Events",
        "ThreadName",
        ("strict",),
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/threads/abort",
        "abortThread",
        "Stop the run of a thread",
        "Aborted",
        "ThreadAbort",
        ("strict",),
    ),
)
SIGNAL_DESCRIPTIONS: dict[str, str] = {
    "sendSignal": "An active run gets the signal before its next request. An idle thread wakes: a durable run starts. "
    "A repeat with the same signal.id gets the first answer.",
    "sendMessage": "As sendSignal, with the words of a user. The thread is created if it does not exist.",
    "queueMessage": "While a run is active, the message waits for a run of its own. Queued messages keep their order.",
    "subscribeToThread": "Signals are chunks of the types data-user-message and data-signal. A comment every 25 "
    "seconds keeps the connection open. The thread must exist.",
    "abortThread": "With expectedRunId, only that run is stopped.",
}
SIGNAL_EXAMPLES: dict[str, JSONObject] = {
    "sendSignal": {
        "threadId": "trip",
        "resourceId": "alice",
        "signal": {"type": "notification", "contents": "The flight is late.", "attributes": {"source": "airline"}},
    },
    "sendMessage": {"threadId": "trip", "resourceId": "alice", "message": "Make it two rooms."},
    "queueMessage": {"threadId": "trip", "resourceId": "alice", "message": "Then book a car."},
    "subscribeToThread": {"threadId": "trip", "resourceId": "alice"},
    "abortThread": {"threadId": "trip", "resourceId": "alice"},
}
SIGNAL_FIELDS: dict[str, str] = {
    "SentSignal.accepted": "Always true.",
    "SentSignal.signal": "The stored signal: id, type, tagName, contents, createdAt, attributes, metadata.",
    "SentSignal.runId": "The run that sees the signal. Blank if none does yet.",
    "SignalBody.runId": "A run of the thread, instead of threadId and resourceId.",
    "SignalBody.signal": "type, contents (a text or text parts), id, attributes, metadata, tagName.",
    "SignalBody.ifActive": "behavior: deliver, persist or discard. attributes are added in this situation.",
    "SignalBody.ifIdle": "behavior: wake, persist or discard. streamOptions are the options of the run that wakes.",
    "MessageBody.runId": "A run of the thread, instead of threadId and resourceId.",
    "MessageBody.message": "A text, a list of text parts, or an object with contents, id, attributes and metadata.",
    "MessageBody.ifActive": "As in signals.",
    "MessageBody.ifIdle": "As in signals.",
    "ThreadAbort.expectedRunId": "Stop this run only.",
    "Aborted.aborted": "False if no run, or another one, was active.",
}


def signal_schemas() -> dict[str, JSONObject]:
    """Return the schemas of the bodies and responses by name."""
    target = {"threadId": STRING, "resourceId": STRING, "runId": STRING, "ifActive": OBJECT, "ifIdle": OBJECT}
    return {
        "SignalBody": body_of({"signal": OBJECT}, **target),
        "MessageBody": body_of({"message": ANY}, **target),
        "SentSignal": with_optional_warnings(object_of(accepted=BOOLEAN, runId=STRING, signal=OBJECT)),
        "ThreadName": body_of({"threadId": STRING}, resourceId=nullable(STRING)),
        "ThreadAbort": body_of({"threadId": STRING}, resourceId=nullable(STRING), expectedRunId=nullable(STRING)),
        "Aborted": with_optional_warnings(object_of(aborted=BOOLEAN)),
    }


SIGNAL_SECTION = ApiSection(
    SIGNAL_OPERATIONS,
    {"": "Running agents"},
    signal_schemas,
    descriptions=SIGNAL_DESCRIPTIONS,
    examples=SIGNAL_EXAMPLES,
    fields=SIGNAL_FIELDS,
)
