"""Agents that can run, and their runs, in the API document."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    JSON,
    OBJECT,
    STRING,
    UUID_STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
)
from agentcms.openapi.operations import EXAMPLE_UUID, PAGING, RUN, RUNNABLE_AGENT, VERSION_SELECTION, Operation
from agentcms.openapi.section import ApiSection
from runs_app.models import AgentRun, RunEvent, RunStep
from runs_app.requests.options import CallOptions
from runs_app.requests.request_context import MAX_CONTEXT_KB

NUMBER: JSON = {"type": "number"}
RUN_STATUSES = AgentRun.Status.values

MESSAGES_SCHEMA: JSON = {
    "description": "A text, a message, or a list of both. The agent answers the last one.",
    "anyOf": [STRING, OBJECT, {"type": "array", "minItems": 1, "items": {"anyOf": [STRING, OBJECT]}}],
}

RUN_OPERATIONS = (
    Operation(
        "get",
        "/api/agents",
        "listRunnableAgents",
        "List the agents that can run, by ID",
        "Runnables",
        query=(*PAGING, "partial", "strict"),
    ),
    Operation("get", "/api/agents/providers", "listProviders", "List model providers", "Providers"),
    Operation(
        "get",
        RUNNABLE_AGENT,
        "getRunnableAgent",
        "Get an agent with its tools, workflows and sub-agents",
        "Runnable",
        query=VERSION_SELECTION,
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/generate",
        "generate",
        "Run an agent and wait for the answer",
        "Generated",
        "Call",
        (*VERSION_SELECTION, "strict"),
        errors=(409, 422, 424),
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/stream",
        "stream",
        "Run an agent and stream its events",
        "Events",
        "Call",
        (*VERSION_SELECTION, "strict"),
        errors=(409, 422),
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/observe",
        "observe",
        "Stream the events of a run from an offset",
        "Events",
        "Observe",
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/stream-until-idle",
        "streamUntilIdle",
        "Run an agent and stream its events, like stream",
        "Events",
        "Call",
        (*VERSION_SELECTION, "strict"),
        errors=(409, 422),
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/recover",
        "recover",
        "Have a durable run continued and stream its events",
        "Events",
        "Recover",
    ),
    Operation(
        "post",
        f"{RUNNABLE_AGENT}/network",
        "network",
        "Run an agent and stream the chunks of a network",
        "Events",
        "Call",
        (*VERSION_SELECTION, "strict"),
        errors=(409, 422),
    ),
    Operation(
        "get",
        "/api/runs",
        "listRuns",
        "List runs, newest first",
        "RunPage",
        query=(*PAGING, "agentId", "runStatus", "children", "strict"),
    ),
    Operation("get", RUN, "getRun", "Get a run", "Run"),
    Operation(
        "get",
        f"{RUN}/events",
        "listEvents",
        "List the events of a run",
        "EventPage",
        query=("after", "perPage", "strict"),
    ),
    Operation(
        "get",
        f"{RUN}/steps",
        "listSteps",
        "List the steps of a durable run",
        "StepPage",
        query=(*PAGING, "strict"),
    ),
    Operation("get", f"{RUN}/stream", "followRun", "Stream the events of a run", "Events", query=("after",)),
    Operation("post", f"{RUN}/cancel", "cancelRun", "Cancel a run", "Run"),
)
RUN_DESCRIPTIONS: dict[str, str] = {
    "listRunnableAgents": "Stored agents with a live version, and agents that are defined in code.",
    "listProviders": "Says for each provider whether it has an API key, and which setting is missing.",
    "getRunnableAgent": "The live version by default.",
    "generate": "Needs the editor role. Waits for the end of the run. A run that failed is a 424.",
    "stream": "Needs the editor role. Returns server-sent events. The run continues if you disconnect.",
    "observe": "Continues a stream after a lost connection.",
    "streamUntilIdle": "Needs the editor role. The published client uses it as stream.",
    "recover": "Needs the editor role. If the process of the run died, another one continues it. Streams all events.",
    "network": "Needs the editor role. The same run as that of stream, with other chunks.",
    "listRuns": "Your own runs; publishers also see the runs of the agents of their owners.",
    "getRun": "Includes the configuration that ran, the warnings and the scores.",
    "listEvents": "The events so far, in order. Ask again with the number of the last one.",
    "listSteps": "Requests to the model, tool calls and reads of the memory. A finished step never runs again.",
    "followRun": "Returns the events so far, then new ones as they occur, until the run ends.",
    "cancelRun": "Stops the run, in whichever process it is.",
}
RUN_PARAMETERS: dict[str, dict[str, JSON]] = {
    "listRuns": {
        "agentId": {"description": "Only runs of this agent."},
        "status": {"description": "Only runs in this state."},
    },
}
RUN_EXAMPLES: dict[str, JSON] = {
    "generate": {"messages": "What is there to see?"},
    "stream": {"messages": [{"role": "user", "content": "What is there to see?"}], "temperature": 0.2},
    "observe": {"runId": EXAMPLE_UUID, "offset": 0},
    "streamUntilIdle": {"messages": "What is there to see?"},
    "recover": {"runId": EXAMPLE_UUID},
    "network": {"messages": "What is there to see?"},
}


def run_schemas() -> dict[str, JSON]:
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


def events_schema() -> JSON:
    """Return the schema of a server-sent event."""
    data = {**STRING, "description": "A chunk as JSON, with runId next to its type; [DONE] at the end."}
    return {"type": "object", "properties": {"id": STRING, "data": data}}


def call_schema() -> JSON:
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


def runnable_schema() -> JSON:
    by_key: JSON = {"type": "object", "additionalProperties": OBJECT}
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


def provider_schema() -> JSON:
    missing = {**STRING, "description": "The name of the setting that is missing."}
    return object_of(
        id=STRING, name=STRING, envVar=missing, connected=BOOLEAN, reason=nullable(STRING), models=array_of(STRING)
    )


def generated_schema() -> JSON:
    return object_of(
        runId=UUID_STRING,
        text=STRING,
        finishReason=STRING,
        usage=ref("Usage"),
        steps=array_of(OBJECT),
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


def summary_schema() -> JSON:
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


def run_schema() -> JSON:
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


def step_schema() -> JSON:
    return object_of(
        key=STRING,
        kind={"enum": RunStep.Kind.values},
        state={"enum": RunStep.State.values},
        attempts=INTEGER,
        startedAt=DATE_TIME,
        finishedAt=nullable(DATE_TIME),
        result=ANY,
    )


RUN_SECTION = ApiSection(
    RUN_OPERATIONS,
    {"/api/runs": "Runs", "": "Running agents"},
    run_schemas,
    bodies={"CallOptions": CallOptions},
    required_bodies=frozenset({"Call", "Observe", "Recover"}),
    descriptions=RUN_DESCRIPTIONS,
    own_parameters=RUN_PARAMETERS,
    page_sizes={"listRunnableAgents": 1000, "listRuns": 50, "listEvents": 1000},
    examples=RUN_EXAMPLES,
)
