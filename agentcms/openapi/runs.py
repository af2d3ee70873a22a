"""The part of the API's description that is about agents that run, and their runs."""

from __future__ import annotations

from agentcms.openapi.json_schema import FLAG, ID, JSON, TEXT, TIME, WHOLE, closed, many, maybe, page, ref
from runs_app.models import AgentRun, RunEvent

NUMBER: JSON = {"type": "number"}
OBJECT: JSON = {"type": "object"}
RUN_STATES = AgentRun.Status.values

MESSAGES: JSON = {
    "description": "A text, a message, or a list of both; the last is the one to answer.",
    "anyOf": [TEXT, OBJECT, {"type": "array", "minItems": 1, "items": {"anyOf": [TEXT, OBJECT]}}],
}


def runs() -> dict[str, JSON]:
    return {
        "Runnable": runnable(),
        "Runnables": {"type": "object", "additionalProperties": ref("Runnable")},
        "Providers": closed(providers=many(provider())),
        "Call": call(),
        "Observe": {**closed(runId=ID), "properties": {"runId": ID, "offset": {**WHOLE, "minimum": 0}}},
        "Events": events(),
        "Generated": generated(),
        "Usage": {"type": "object", "additionalProperties": WHOLE},
        "RunSummary": summary(),
        "RunPage": page("runs", "RunSummary"),
        "Run": run(),
        "Event": closed(number=WHOLE, type={"enum": RunEvent.Type.values}, data=ref("Chunk"), createdAt=TIME),
        "EventPage": closed(events=many(ref("Event")), status={"enum": RUN_STATES}, hasMore=FLAG),
        "Chunk": closed(type=TEXT, payload=OBJECT),
    }


def events() -> JSON:
    """Of each event."""
    data = {**TEXT, "description": "A chunk with the runId beside its type, as JSON; [DONE] at last."}
    return {"type": "object", "properties": {"id": TEXT, "data": data}}


def call() -> JSON:
    """The options, beside the messages; what is not said here is ignored, and what would change the answer refused."""
    thread = {"anyOf": [TEXT, {"type": "object", "properties": {"id": TEXT}}]}
    tool = {"type": "object", "properties": {"description": TEXT, "inputSchema": OBJECT}}
    return {
        "allOf": [
            {
                "type": "object",
                "required": ["messages"],
                "properties": {
                    "messages": MESSAGES,
                    "memory": {"type": "object", "properties": {"thread": thread, "resource": TEXT}},
                    "clientTools": {"type": "object", "additionalProperties": tool},
                },
            },
            ref("CallOptions"),
        ]
    }


def runnable() -> JSON:
    by_key: JSON = {"type": "object", "additionalProperties": OBJECT}
    named = many({"type": "object", "properties": {"id": TEXT, "name": TEXT}})
    return closed(
        id=TEXT,
        name=TEXT,
        description=TEXT,
        instructions=TEXT,
        provider=TEXT,
        modelId=TEXT,
        tools=by_key,
        workflows=by_key,
        agents=by_key,
        inputProcessors=named,
        outputProcessors=named,
        supportsMemory=FLAG,
        defaultOptions=OBJECT,
        metadata=OBJECT,
        source={"enum": ["stored", "code"]},
        status={"enum": ["published", "draft"]},
        resolvedVersionId=maybe(ID),
        resolvedVersionNumber=maybe(WHOLE),
    )


def provider() -> JSON:
    missing = {**TEXT, "description": "The setting that is missing."}
    return closed(id=TEXT, name=TEXT, envVar=missing, connected=FLAG, reason=maybe(TEXT), models=many(TEXT))


def generated() -> JSON:
    return closed(
        runId=ID,
        text=TEXT,
        finishReason=TEXT,
        usage=ref("Usage"),
        steps=many(OBJECT),
        toolCalls=many(ref("Chunk")),
        toolResults=many(ref("Chunk")),
        warnings=many(ref("Warning")),
        response=closed(id=ID, timestamp=TIME, modelId=TEXT, messages=many(OBJECT)),
        agentId=TEXT,
        versionId=maybe(ID),
        versionNumber=maybe(WHOLE),
        cost=maybe(NUMBER),
        isDemo=FLAG,
    )


def summary() -> JSON:
    return closed(
        id=ID,
        agentId=TEXT,
        ownerId=TEXT,
        parentId=maybe(ID),
        target={"enum": AgentRun.Target.values},
        versionId=maybe(ID),
        versionNumber=maybe(WHOLE),
        requestedBy=maybe(TEXT),
        status={"enum": RUN_STATES},
        finishReason=maybe(TEXT),
        usage=ref("Usage"),
        cost=maybe(NUMBER),
        error=maybe(TEXT),
        isDemo=FLAG,
        createdAt=TIME,
        startedAt=maybe(TIME),
        firstTextAt=maybe(TIME),
        cancelRequestedAt=maybe(TIME),
        finishedAt=maybe(TIME),
    )


def run() -> JSON:
    more = closed(
        threadId=maybe(TEXT),
        messages=many(OBJECT),
        options=OBJECT,
        configuration=maybe(ref("Configuration")),
        output=TEXT,
        warnings=many(ref("Warning")),
        scores=many(closed(scorer=TEXT, score=maybe(NUMBER), error=maybe(TEXT))),
        children=many(ID),
    )
    return {"allOf": [ref("RunSummary"), more]}
