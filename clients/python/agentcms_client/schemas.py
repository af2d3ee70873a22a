"""Types of the objects that the API returns."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from agentcms_client.json_types import JSONObject


class AgentWarning(TypedDict):
    """A key in an agent that nothing registers."""

    field: str
    key: str
    message: str


class Agent(TypedDict):
    """An agent with the configuration of one of its versions."""

    id: str
    name: str
    description: str
    instructions: str
    requestContextSchema: NotRequired[JSONObject]
    model: JSONObject
    tools: list[str]
    defaultOptions: JSONObject
    durable: NotRequired[bool | dict[str, int]]
    workflows: list[str]
    agents: list[str]
    integrationTools: list[str]
    conditional: NotRequired[JSONObject]
    contextKeys: NotRequired[list[str]]
    mcpClients: NotRequired[JSONObject]
    backgroundTasks: NotRequired[JSONObject]
    knowledge: NotRequired[JSONObject]
    inputProcessors: list[JSONObject]
    outputProcessors: list[JSONObject]
    memory: str | JSONObject | None
    scorers: JSONObject
    metadata: JSONObject
    ownerId: str
    activeVersionId: str
    activeVersionNumber: int
    headVersionId: str
    headVersionNumber: int
    resolvedVersionId: str
    hasDraft: bool
    revision: int
    createdAt: str
    updatedAt: str
    archivedAt: str | None
    status: str
    warnings: list[AgentWarning]


class Version(TypedDict):
    """One version of an agent."""

    id: str
    agentId: str
    versionNumber: int
    name: str
    snapshot: JSONObject
    changedFields: list[str]
    changeMessage: str
    createdAt: str
    author: str | None
    source: str
    basedOn: int | None
    pinned: bool
    isActive: bool
    isHead: bool


class Comparison(TypedDict):
    """The differences between two versions."""

    diffs: list[JSONObject]
    summary: str
    details: list[JSONObject]
    fromVersion: Version
    toVersion: Version


class DeletedAgent(TypedDict):
    """An agent in the trash. `id` is that of its entry."""

    id: str
    agentId: str
    name: str
    ownerId: str
    liveVersionNumber: int | None
    versionCount: int
    deletedAt: str
    deletedBy: str | None
    removedAt: str


class Answer(TypedDict):
    """The answer of a run. `warnings` name, among others, variables without a value.

    `suspendPayload` is the call for which a run waits whose `finishReason` is "suspended".
    """

    runId: str
    text: str
    finishReason: str
    usage: dict[str, int]
    totalUsage: dict[str, int]
    steps: list[JSONObject]
    reasoning: list[JSONObject]
    reasoningText: str
    sources: list[JSONObject]
    files: list[JSONObject]
    error: JSONObject | None
    toolCalls: list[JSONObject]
    toolResults: list[JSONObject]
    object: JSONObject | None
    suspendPayload: NotRequired[JSONObject]
    warnings: list[AgentWarning]
    response: JSONObject
    agentId: str
    versionId: str | None
    versionNumber: int | None
    cost: float | None
    isDemo: bool


class Run(TypedDict):
    """A run with its answer so far."""

    id: str
    agentId: str
    ownerId: str
    parentId: str | None
    target: str
    versionId: str | None
    versionNumber: int | None
    requestedBy: str | None
    status: str
    finishReason: str | None
    output: str
    usage: dict[str, int]
    cost: float | None
    error: str | None
    isDemo: bool
    createdAt: str
    startedAt: str | None
    firstTextAt: str | None
    cancelRequestedAt: str | None
    finishedAt: str | None
    threadId: str | None
    messages: list[JSONObject]
    options: JSONObject
    requestContext: JSONObject
    instructions: str | None
    configuration: JSONObject | None
    scores: list[JSONObject]
    children: list[str]
    warnings: list[AgentWarning]


class Approval(TypedDict):
    """A tool call that waits for a person, or that was decided."""

    id: str
    runId: str | None
    rootRunId: str
    agentId: str
    toolCallId: str
    toolName: str
    args: Any
    kind: str
    state: str
    role: str
    fourEyes: bool
    mark: str
    requestedBy: str | None
    reason: str | None
    resumeSchema: JSONObject | None
    suspendPayload: Any
    createdAt: str
    expiresAt: str | None
    decidedAt: str | None
    decidedBy: str | None
    via: str | None
    editedArguments: JSONObject | None
    warnings: NotRequired[list[AgentWarning]]


class Job(TypedDict):
    """A background job with its progress and result."""

    id: str
    kind: str
    state: str
    done: int
    total: int | None
    result: Any
    error: str | None
    createdAt: str
    startedAt: str | None
    finishedAt: str | None


class Page(TypedDict):
    """The members that all pages of lists have, in addition to `agents` or `versions`."""

    total: int
    page: int
    perPage: int
    hasMore: bool
