"""What the API answers with, as far as types can say it."""

from __future__ import annotations

from typing import Any, TypedDict


class Warning(TypedDict):
    field: str
    key: str
    message: str


class Agent(TypedDict):
    """An agent as one of its versions has it."""

    id: str
    name: str
    description: str
    instructions: str
    model: dict[str, Any]
    tools: list[str]
    defaultOptions: dict[str, Any]
    workflows: list[str]
    agents: list[str]
    integrationTools: list[str]
    inputProcessors: list[dict[str, Any]]
    outputProcessors: list[dict[str, Any]]
    memory: str | None
    scorers: dict[str, Any]
    metadata: dict[str, Any]
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
    warnings: list[Warning]


class Version(TypedDict):
    """One version of an agent's history."""

    id: str
    agentId: str
    versionNumber: int
    name: str
    snapshot: dict[str, Any]
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
    """What differs between two versions."""

    diffs: list[dict[str, Any]]
    summary: str
    details: list[dict[str, Any]]
    fromVersion: Version
    toVersion: Version


class Job(TypedDict):
    """How far long work is."""

    id: str
    kind: str
    state: str
    done: int
    total: int | None
    result: Any
    error: str | None


class Page(TypedDict):
    """A page of a list; `agents` or `versions` stands beside these."""

    total: int
    page: int
    perPage: int
    hasMore: bool
