"""The dependencies of a running agent, which pydantic-ai passes to every tool and capability as `deps`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.references import MissingReference
from memory_app.observational.observations_for_run import ObservedWindow
from memory_app.working.values import WorkingMemory

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelRequestPart, ModelResponsePart

    MessagePart = ModelRequestPart | ModelResponsePart

# Runs a sub-agent in a child run: (key, prompt, tool call id) → its output.
CallSubAgent = Callable[[str, str, str], Awaitable[str]]
# Parts of messages with their processed form, by the `id` of both.
ProcessedParts: TypeAlias = "dict[int, tuple[MessagePart, MessagePart]]"


@dataclass(frozen=True)
class ToolAttempt:
    """An execution of a tool call. A durable run executes a call again if its process stops meanwhile."""

    number: int
    idempotency_key: str  # the same in each attempt


@dataclass
class RunDeps:
    """In-memory data of one run. Nothing here outlives the run; permanent data is in the rows."""

    run_id: UUID
    agent_key: str
    owner_id: str  # of the run; the agent of a child run may belong to another owner
    user_id: int | None
    call_sub_agent: CallSubAgent
    thread_id: int | None = None
    resource_id: int | None = None  # the owner of the memory
    user_name: str = ""
    memory_options: JSONMapping = field(default_factory=dict)  # of the call; they narrow the agent's
    working_memory: WorkingMemory | None = None  # as the model knows it
    has_noted: bool = False  # whether this process has changed the working memory for the model
    observed: ObservedWindow | None = None  # of the thread; None before it is read, and without observations
    created_at: datetime | None = None  # of the run; None for a background task
    prompt_key: str = ""  # the ID that the client gave to the message of the user
    instructions: str | None = None  # with the variables filled; None for an agent that runs without a stored run
    is_woken: bool = False  # by signals: the prompt stands for the first of them
    known_signals: set[str] = field(default_factory=set)  # keys of those that the run was given
    steps_before: int = 0  # requests to the model in earlier segments of the run
    remembered_count: int = 0  # messages of earlier runs that precede those of this run
    # Parts of messages that input processors have seen, with their processed form, by the ids of both. The parts are
    # stored because an id is only unique while its object exists.
    processed_parts: ProcessedParts = field(default_factory=dict)
    # The agents from the first run of the tree to this one. A sub-agent in it would call itself.
    agent_path: tuple[str, ...] = ()
    warnings: list[MissingReference] = field(default_factory=list)
    options: JSONObject = field(default_factory=dict)
    remembered: JSONObject = field(default_factory=dict)  # what the run stores of its memory, by part
    recalled_block: str | None = None  # recalled messages of other threads; None before they are recalled
    embedder: str = ""  # the one that indexes the messages of the run, or blank
    root_id: UUID | None = None  # the first run of the tree
    request_context: JSONMapping = field(default_factory=dict)  # with the facts about the caller
    is_experiment: bool = False  # then no person decides calls of tools
    used_mocks: set[int] = field(default_factory=set)  # of an experiment's item, by all runs of the tree
    is_resumed: bool = False  # after it waited for people
    is_stopped: bool = False  # by its stop condition
    task_id: UUID | None = None  # of the background task that calls a tool
    report_progress: Callable[[JSONObject], None] | None = None  # of a background task
    is_durable: bool = False
    # Adds a chunk to the events of the run. Tools from outside report what they do meanwhile.
    record: Callable[[JSONObject], None] | None = None
    answer_keys: list[str] = field(default_factory=list)  # of its answers in the response cache
    call_numbers: Counter[str] = field(default_factory=Counter)  # of the calls so far, by the IDs that the model gave
    tool_attempts: dict[str, ToolAttempt] = field(default_factory=dict)  # of a durable run, by the ID of the call
