"""The thread and the resource of a new run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self
from uuid import UUID

from django.db import IntegrityError, transaction

from agentcms.db.column_values import ColumnValues
from agentcms.errors import ApiError, Conflict
from agentcms.wire.json_types import JSONObject
from memory_app.history.messages import reject_full_thread
from memory_app.history.threads import get_or_create_resource, open_child_thread, open_thread
from memory_app.models import Thread
from memory_app.observational.limits import THREAD_REQUIRED, THREAD_REQUIRED_MESSAGE, requires_thread
from memory_app.realms import MemoryCaller, memory_caller
from runs_app.engine.start.input import RunInput
from runs_app.models import AgentRun
from runs_app.requests.memory import MAX_TITLE_LENGTH, MemoryCall
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from django.contrib.auth.models import User


MESSAGES_OF_RUN = 2  # at least: a prompt and an answer


class ThreadName(NamedTuple):
    """The key and the resource of a thread, with title and metadata if it is new. A blank key means no thread.

    `has_default` says that a run without names has the memory of the caller's own resource.
    """

    key: str
    resource: str
    title: str = ""
    metadata: JSONObject | None = None
    has_default: bool = True

    @classmethod
    def of(cls, key: str, resource: str, memory: MemoryCall) -> Self:
        return cls(key, resource, memory.title, memory.metadata)


class ThreadActive(Conflict):
    """Error 409: another run of the thread is active."""

    def __init__(self, key: str, run_id: UUID) -> None:
        message = (
            f"Run {run_id} of thread {key} is still active. Join it with send-message, follow it with queue-message, "
            f"stop it with POST /api/runs/{run_id}/cancel, or use another thread."
        )
        super().__init__(message, "thread_active", headers={"X-Run-ID": str(run_id)})


def reject_missing_thread(agent: ResolvedAgent, run_input: RunInput, thread: ThreadName) -> None:
    """Raise ApiError (400) if the memory of the agent observes threads and the run has none."""
    is_off = (run_input.get("memory") or {}).get("observationalMemory") is False
    if not (thread.key or is_off) and requires_thread(agent.configuration.get("memory")):
        raise ApiError(400, THREAD_REQUIRED_MESSAGE, THREAD_REQUIRED)


def memory_columns(agent: ResolvedAgent, user: User | None, name: ThreadName) -> ColumnValues:
    """Return the columns with the thread and the resource of a run, or none without a user or a memory.

    A run that names neither has the resource of its caller. Keys for many resources have none, so neither has the run.
    Raise ThreadActive if another run of the thread is active, Conflict if the thread is full, and Forbidden if it
    belongs to another resource.
    """
    key, resource, title, metadata, has_default = name
    is_bound = bool(getattr(user, "api_key", None) and user.api_key.resource)  # type: ignore[union-attr]
    takes_default = has_default and bool(agent.configuration.get("memory"))
    if user is None or not (key or resource or is_bound or takes_default):
        return {}
    caller = memory_caller(user)
    if not key:
        return resource_columns(caller, resource)
    thread = open_thread(caller, key, resource, title=title, metadata=metadata, **columns_of_agent(agent))
    # `open_thread` has locked the row of the thread, so that of two requests only one starts a run.
    if (active := active_run_id(thread)) is not None:
        raise ThreadActive(key, active)
    if agent.configuration.get("memory"):
        reject_full_thread(thread, MESSAGES_OF_RUN)
    return {"thread": thread, "resource_id": thread.resource_id}


def columns_of_agent(agent: ResolvedAgent) -> ColumnValues:
    """Return the columns of a thread that name its agent."""
    agent_id = agent.id if agent.source == "stored" else None
    return {"agent_id": agent_id, "agent_key": agent.id, "agent_owner_id": agent.owner_id}


def resource_columns(caller: MemoryCaller, resource: str) -> ColumnValues:
    """Return the resource of a run without a thread as a column, or none if neither call nor credentials name one."""
    if not (resource or caller.default_resource):
        return {}
    return {"resource": get_or_create_resource(caller, caller.resource_to_write(resource))}


def find_child_memory(agent: ResolvedAgent, parent: AgentRun) -> ColumnValues:
    """Return the thread and the resource of a sub-agent's run as columns. Without memory it has no thread.

    The thread is one of the sub-agent below that of its parent, or of the nearest run above that has one.
    """
    if not agent.configuration.get("memory"):
        return {"resource_id": parent.resource_id}
    above = parent
    while above.thread_id is None and above.parent is not None:
        above = above.parent
    thread = Thread.objects.filter(pk=above.thread_id).first() if above.thread_id is not None else None
    if thread is None:
        return {"resource_id": above.resource_id} if above.thread_id is None else {}
    columns = {"title": agent.name[:MAX_TITLE_LENGTH], **columns_of_agent(agent)}
    try:
        with transaction.atomic():
            child = open_child_thread(thread, **columns)
    except (IntegrityError, Thread.DoesNotExist):  # the conversation was deleted meanwhile
        return {}
    return {"thread": child, "resource_id": child.resource_id}


def active_run_id(thread: Thread) -> UUID | None:
    """Return the ID of the run that a process executes in a thread, or None. The caller has locked the thread."""
    return AgentRun.objects.leased().filter(thread=thread, parent=None).values_list("pk", flat=True).first()
