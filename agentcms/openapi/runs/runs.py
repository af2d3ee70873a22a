"""Agents that can run, and their runs, in the API document."""

from __future__ import annotations

from agentcms.openapi.operations import EXAMPLE_UUID, PAGING, RUN, RUNNABLE_AGENT, VERSION_SELECTION, Operation
from agentcms.openapi.runs.run_schemas import run_schemas
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from runs_app.requests.options import CallOptions

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
        "Run an agent and stream its events and those of its background tasks",
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
    "streamUntilIdle": "As stream. The stream stays open until the background tasks of the run have ended.",
    "recover": "Needs the editor role. If the process of the run died, another one continues it. Streams all events.",
    "network": "Needs the editor role. The same run as that of stream, with other chunks.",
    "listRuns": "Your own runs; publishers also see the runs of the agents of their owners.",
    "getRun": "Includes the configuration that ran, the warnings and the scores.",
    "listEvents": "The events so far, in order. Ask again with the number of the last one.",
    "listSteps": "Requests to the model, tool calls and reads of the memory. A finished step never runs again.",
    "followRun": "Returns the events so far, then new ones as they occur, until the run ends.",
    "cancelRun": "Stops the run, in whichever process it is.",
}
RUN_PARAMETERS: dict[str, dict[str, JSONObject]] = {
    "listRuns": {
        "agentId": {"description": "Only runs of this agent."},
        "status": {"description": "Only runs in this state."},
    },
}
RUN_EXAMPLES: dict[str, JSONObject] = {
    "generate": {"messages": "What is there to see?"},
    "stream": {"messages": [{"role": "user", "content": "What is there to see?"}], "temperature": 0.2},
    "observe": {"runId": EXAMPLE_UUID, "offset": 0},
    "streamUntilIdle": {"messages": "What is there to see?"},
    "recover": {"runId": EXAMPLE_UUID},
    "network": {"messages": "What is there to see?"},
}

RUN_FIELDS: dict[str, str] = {
    "Runnable.id": "The ID.",
    "Runnable.source": "Whether the agent is stored or defined in code.",
    "Runnable.status": "Whether this is the published version or the draft.",
    "Runnable.provider": "The key of the model provider.",
    "Call.schema": "The JSON Schema of the answer, which is an object.",
    "Call.memory": "The conversation that the run continues.",
    "Call.messages": "A text, a message, or a list of both. The agent answers the last one.",
    "Call.id": "The ID of the conversation.",
    "Call.description": "When the model should call the tool.",
    "Generated.id": "The ID of the response.",
    "Generated.error": "Always null. A run that failed is a 424.",
    "Generated.files": "Always empty.",
    "Generated.sources": "Always empty.",
    "Generated.suspendPayload": "The call for which the run waits: toolCallId, toolName and args. Only if it waits.",
    "totalUsage": "The same as usage.",
    "reasoning": "The reasoning of the last step, as parts.",
    "reasoningText": "The reasoning of the last step, as a text.",
    "Generated.messages": "The messages of the answer.",
    "Providers.id": "The key of the provider, as in model.provider.",
    "Providers.reason": "Why the provider cannot be used.",
    "Step.key": "The segment, the kind and the call or number of the step. It is unique in the run.",
    "Step.kind": "What the step did.",
    "Step.state": "Whether the step has finished.",
    "Step.attempts": "How often it was started.",
    "Step.result": "What the step returned, as the server stores it.",
    "Events.id": "The number of the event.",
    "Event.type": "The kind of event.",
    "Run.error": "Why the run or the scorer failed.",
    "Chunk.type": "The kind of the chunk, such as text-delta or tool-call.",
}


RUN_SECTION = ApiSection(
    RUN_OPERATIONS,
    {"/api/runs": "Runs", "": "Running agents"},
    run_schemas,
    bodies={"CallOptions": CallOptions},
    descriptions=RUN_DESCRIPTIONS,
    own_parameters=RUN_PARAMETERS,
    page_sizes={"listRunnableAgents": 1000, "listRuns": 50, "listEvents": 1000},
    examples=RUN_EXAMPLES,
    fields=RUN_FIELDS,
)
