"""The schemas of runs, of what starts one, and of agents and providers."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    OBJECT,
    STRING,
    UUID_STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
)
from agentcms.wire.json_types import JSONObject
from runs_app.models import AgentRun, RunEvent, RunStep
from runs_app.requests.request_context import MAX_CONTEXT_KB

NUMBER: JSONObject = {"type": "number"}
RUN_STATUSES = AgentRun.Status.values
MESSAGES_SCHEMA: JSONObject = {
    "description": "A text, a message, or a list of both. The agent answers the last one.",
    "anyOf": [STRING, OBJECT, {"type": "array", "minItems": 1, "items": {"anyOf": [STRING, OBJECT]}}],
}


def run_schemas() -> dict[str, JSONObject]:
    return {
        "Runnable": runnable_schema(),
        "Runnables": {"type": "object", "additionalProperties": ref("Runnable")},
        "Providers": object_of(providers=array_of(provider_schema())),
        "Call": call_schema(),
        "Observe": {
            **object_of(runId=UUID_STRING),
            "properties": {"runId": UUID_STRING, "offset": {**INTEGER, "minimum": 0}},
        },
        "Recover": object_of(runId=UUID_STRING),
        "Events": events_schema(),
        "Generated": generated_schema(),
        "Usage": {"type": "object", "additionalProperties": INTEGER},
        "RunSummary": summary_schema(),
        "RunPage": page_of("runs", "RunSummary"),
        "Run": run_schema(),
        "Event": object_of(
            number=INTEGER, type={"enum": RunEvent.Type.values}, data=ref("Chunk"), createdAt=DATE_TIME
        ),
        "EventPage": object_of(events=array_of(ref("Event")), status={"enum": RUN_STATUSES}, hasMore=BOOLEAN),
        "Chunk": object_of(type=STRING, payload=OBJECT),
        "Step": step_schema(),
        "StepPage": page_of("steps", "Step"),
    }


def events_schema() -> JSONObject:
    """Return the schema of a server-sent event."""
    data = {**STRING, "description": "A chunk as JSON, with runId next to its type; [DONE] at the end."}
    return {"type": "object", "properties": {"id": STRING, "data": data}}


def call_schema() -> JSONObject:
    """Return the schema of a call: messages and options. Unknown options are ignored or rejected, by their effect."""
    new_thread = {"type": "object", "properties": {"id": STRING, "title": STRING, "metadata": OBJECT}}
    thread = {"anyOf": [STRING, new_thread]}
    memory = {"thread": thread, "resource": STRING, "options": OBJECT}
    tool = {"type": "object", "properties": {"description": STRING, "inputSchema": OBJECT}}
    return {
        "allOf": [
            {
                "type": "object",
                "required": ["messages"],
                "properties": {
                    "messages": MESSAGES_SCHEMA,
                    "memory": {"type": "object", "properties": memory},
                    "clientTools": {"type": "object", "additionalProperties": tool},
                    "structuredOutput": {"type": "object", "required": ["schema"], "properties": {"schema": OBJECT}},
                    "requestContext": {
                        **OBJECT,
                        "description": f"The values of the agent's variables, at most {MAX_CONTEXT_KB} KB.",
                    },
                    "variables": {**OBJECT, "description": "A shorthand of requestContext, and stronger than it."},
                },
            },
            ref("CallOptions"),
        ]
    }


def runnable_schema() -> JSONObject:
    by_key: JSONObject = {"type": "object", "additionalProperties": OBJECT}
    items = array_of({"type": "object", "properties": {"id": STRING, "name": STRING}})
    return object_of(
        id=STRING,
        name=STRING,
        description=STRING,
        instructions=STRING,
        provider=STRING,
        modelId=STRING,
        tools=by_key,
        workflows=by_key,
        agents=by_key,
        inputProcessors=items,
        outputProcessors=items,
        supportsMemory=BOOLEAN,
        defaultOptions=OBJECT,
        metadata=OBJECT,
        source={"enum": ["stored", "code"]},
        status={"enum": ["published", "draft"]},
        resolvedVersionId=nullable(UUID_STRING),
        resolvedVersionNumber=nullable(INTEGER),
    )


def provider_schema() -> JSONObject:
    missing = {**STRING, "description": "The name of the setting that is missing."}
    return object_of(
        id=STRING, name=STRING, envVar=missing, connected=BOOLEAN, reason=nullable(STRING), models=array_of(STRING)
    )


def generated_schema() -> JSONObject:
    schema = object_of(
        runId=UUID_STRING,
        text=STRING,
        finishReason=STRING,
        usage=ref("Usage"),
        totalUsage=ref("Usage"),
        steps=array_of(OBJECT),
        reasoning=array_of(OBJECT),
        reasoningText=STRING,
        **dict.fromkeys(("sources", "files"), array_of(OBJECT)),
        error=nullable(OBJECT),
        object=nullable(OBJECT),
        toolCalls=array_of(ref("Chunk")),
        toolResults=array_of(ref("Chunk")),
        warnings=array_of(ref("Warning")),
        response=object_of(id=UUID_STRING, timestamp=DATE_TIME, modelId=STRING, messages=array_of(OBJECT)),
        agentId=STRING,
        versionId=nullable(UUID_STRING),
        versionNumber=nullable(INTEGER),
        cost=nullable(NUMBER),
        isDemo=BOOLEAN,
    )
    schema["properties"] |= {"suspendPayload": OBJECT}
    return schema


def summary_schema() -> JSONObject:
    return object_of(
        id=UUID_STRING,
        agentId=STRING,
        ownerId=STRING,
        parentId=nullable(UUID_STRING),
        target={"enum": AgentRun.Target.values},
        versionId=nullable(UUID_STRING),
        versionNumber=nullable(INTEGER),
        requestedBy=nullable(STRING),
        status={"enum": RUN_STATUSES},
        finishReason=nullable(STRING),
        usage=ref("Usage"),
        cost=nullable(NUMBER),
        error=nullable(STRING),
        isDemo=BOOLEAN,
        createdAt=DATE_TIME,
        startedAt=nullable(DATE_TIME),
        firstTextAt=nullable(DATE_TIME),
        cancelRequestedAt=nullable(DATE_TIME),
        finishedAt=nullable(DATE_TIME),
    )


def run_schema() -> JSONObject:
    details = object_of(
        threadId=nullable(STRING),
        messages=array_of(OBJECT),
        options=OBJECT,
        requestContext=OBJECT,
        instructions=nullable({**STRING, "description": "The instructions of the model, with the variables filled."}),
        configuration=nullable(ref("Configuration")),
        output=STRING,
        warnings=array_of(ref("Warning")),
        scores=array_of(object_of(scorer=STRING, score=nullable(NUMBER), error=nullable(STRING))),
        children=array_of(UUID_STRING),
    )
    return {"allOf": [ref("RunSummary"), details]}


def step_schema() -> JSONObject:
    return object_of(
        key=STRING,
        kind={"enum": RunStep.Kind.values},
        state={"enum": RunStep.State.values},
        attempts=INTEGER,
        startedAt=DATE_TIME,
        finishedAt=nullable(DATE_TIME),
        result=ANY,
    )
