"""The start of runs: permission, limits, and the row that holds all that a run needs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID, uuid5

from django.conf import settings
from django.db import IntegrityError, transaction

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.db.locks import lock_name
from agentcms.errors import ApiError, Conflict, Unavailable, Unprocessable
from agentcms.tracing.spans import traceparent_to_store
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.unknown_names import UnknownName
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.editing.archived import reject_archived
from agents_app.models import Agent
from memory_app.history.messages import known_keys
from memory_app.history.threads import get_or_create_resource, open_thread
from memory_app.models import Thread
from memory_app.observational.limits import THREAD_REQUIRED, THREAD_REQUIRED_MESSAGE, requires_thread
from memory_app.realms import memory_caller
from runs_app.building.instructions import fill_instructions
from runs_app.building.tool_names import tool_names
from runs_app.engine import leases
from runs_app.engine.durability import find_durability
from runs_app.engine.engine import get_engine
from runs_app.engine.runners import get_runner
from runs_app.events.notifications import notifier, thread_channel
from runs_app.frequent_queries import leased_runs_of, locked_agent_of_run, suspended_runs
from runs_app.models import AgentRun
from runs_app.requests.facts import FACTS, context_input, for_caller, with_variants
from runs_app.requests.memory import MemoryCall
from runs_app.requests.messages import parse_messages
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from django.contrib.auth.models import User

IDEMPOTENT_RUN_NAMESPACE = UUID("0d9f9a52-3c1f-5f0e-9d7e-6a1c2b8f4e11")  # of the ids of runs with an idempotency key
SIGNALS = "signals"  # in the input of a run that signals have woken: their IDs
DIGEST_KEY = "mark"  # of the input of a run with an idempotency key; existing rows have this name
RUN_RETRY_AFTER = 2  # seconds
TAKEN_TOOL_NAME_MESSAGE = "The agent already has a tool with this name. Rename your tool."

RunInput = dict[str, Any]  # the messages, options and client tools of a run, as stored in its row


class ExperimentItem(NamedTuple):
    """An item of an experiment that starts a run. `options` are its `toolMocks` and `unmockedToolPolicy`."""

    experiment_id: UUID
    options: Mapping[str, Any]


class ThreadName(NamedTuple):
    """The key and the resource of a thread, with title and metadata if it is new. A blank key means no thread."""

    key: str
    resource: str
    title: str = ""
    metadata: dict[str, Any] | None = None


class TooManyRuns(ApiError):
    """Error 429: the user or the agent has too many unfinished runs."""

    def __init__(self, message: str) -> None:
        super().__init__(429, message, "too_many_runs", headers={"Retry-After": str(RUN_RETRY_AFTER)})


class ThreadActive(Conflict):
    """Error 409: another run of the thread is active."""

    def __init__(self, key: str, run_id: UUID) -> None:
        message = (
            f"Run {run_id} of thread {key} is still active. Join it with send-message, follow it with queue-message, "
            f"stop it with POST /api/runs/{run_id}/cancel, or use another thread."
        )
        super().__init__(message, "thread_active", headers={"X-Run-ID": str(run_id)})


def start_run(
    agent: ResolvedAgent,
    *,
    user: Caller | None,
    messages: Any,
    options: Mapping[str, Any] | None = None,
    client_tools: list[dict[str, Any]] | None = None,
    thread: str = "",
    resource: str = "",
    memory: MemoryCall = MemoryCall(),  # noqa: B008  it cannot be changed
    key: str = "",
    request_context: Mapping[str, Any] | None = None,
    warnings: Sequence[UnknownName] = (),
    experiment: ExperimentItem | None = None,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> AgentRun:
    """Create a run. After the commit, this process or another one executes it.

    `messages` is a text or a conversation in a form that `parse_messages` accepts. `options` are validated options.
    A second call with the same `key` and user returns the same run. `user` is None for trusted code.
    `memory` narrows the memory of the agent. `request_context` are the values of its variables.
    `warnings` become warnings of the run. `experiment` says that an experiment starts the run. The limits of users
    and agents do not apply to it then. `facts` about a caller to try with take the place of those of the user.
    Raise RoleRequired, ConfigError, TooManyRuns, or Agent.DoesNotExist or AgentArchived if the agent was deleted or
    archived meanwhile.
    """
    requester = require_editor(user, agent)
    agent, context = for_caller(agent, user, request_context or {}, facts)
    durability = find_durability(agent, options or {})
    run_input = build_input(messages, durability.options, client_tools or [], request_context or {}, memory.options)
    reject_taken_tool_names(agent, client_tools or [])
    run_input |= context | ({"experiment": experiment.options} if experiment is not None else {})
    columns = run_columns(durability.is_durable, warnings, experiment)
    create: Callable[..., AgentRun] = partial(start_idempotently, key=key) if key else create_run
    return create(agent, requester, run_input, ThreadName(thread, resource, memory.title, memory.metadata), **columns)


def require_editor(user: Caller | None, agent: ResolvedAgent) -> User | None:
    """Return the user of a new run, or None for trusted code. Raise RoleRequired."""
    if user is not None:
        require_role(user, Role.EDITOR, agent.owner_id)
    return cast("User | None", user)  # anonymous users have no role


def run_columns(
    is_durable: bool, warnings: Sequence[UnknownName], experiment: ExperimentItem | None
) -> dict[str, Any]:
    """Return the columns of a new run that come from its call."""
    columns = {"warnings": [warning._asdict() for warning in warnings], "is_durable": is_durable}
    return columns if experiment is None else {**columns, "experiment_id": experiment.experiment_id}


def start_idempotently(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, thread: ThreadName, key: str, **columns: Any
) -> AgentRun:
    """Return the run of an idempotency key. The first call creates it."""
    run_id = idempotent_run_id(user, key)
    # The live version may change between two attempts, so only a version that the caller named counts.
    version = str(agent.version_id) if agent.target == AgentRun.Target.VERSION else ""
    # The variants that were chosen are part of the mark, the facts behind them are not.
    marked = {name: value for name, value in run_input.items() if name != FACTS}
    digest = sha256_hex(canonical([agent.id, agent.target, version, marked, [thread.key, thread.resource]]))
    runs = AgentRun.objects.filter(pk=run_id)
    if (run := runs.first()) is None:
        try:
            return create_run(agent, user, {**run_input, DIGEST_KEY: digest}, thread, pk=run_id, **columns)
        except (IntegrityError, ThreadActive):  # a concurrent request with the same key was first
            if (run := runs.first()) is None:
                raise
    if run.input.get(DIGEST_KEY) != digest:
        raise Unprocessable("This Idempotency-Key was used for another request.", "key_reused")
    return run


def idempotent_run_id(user: User | None, key: str) -> UUID:
    """Return the ID of the run that an idempotency key of a user names."""
    return uuid5(IDEMPOTENT_RUN_NAMESPACE, f"{user.pk if user else ''} {key}")


def create_run(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, thread: ThreadName, **columns: Any
) -> AgentRun:
    """Create a run if the limits allow it. Raise TooManyRuns otherwise, and ConfigError for missing variables."""
    run_input, columns["warnings"] = fill_input(agent, run_input, columns.get("warnings", []))
    reject_missing_thread(agent, run_input, thread)
    with transaction.atomic():
        if "experiment_id" not in columns:  # the experiment counts its runs
            lock_and_check_limits(agent, user)
        memory = find_memory(agent, user, thread)
        run_input = without_known_messages(run_input, memory.get("thread"))
        return insert_run(agent, user, run_input, **memory, **columns)


def reject_missing_thread(agent: ResolvedAgent, run_input: RunInput, thread: ThreadName) -> None:
    """Raise ApiError (400) if the memory of the agent observes threads and the run has none."""
    is_off = (run_input.get("memory") or {}).get("observationalMemory") is False
    if not (thread.key or is_off) and requires_thread(agent.configuration.get("memory")):
        raise ApiError(400, THREAD_REQUIRED_MESSAGE, THREAD_REQUIRED)


def start_child(
    agent: ResolvedAgent, *, parent: AgentRun, prompt: str, call_id: str, options: Mapping[str, Any]
) -> AgentRun:
    """Create a child run. The process that executes the parent executes it."""
    columns = leases.start_columns(get_engine().holder)
    return save_child(agent, parent, prompt, options, parent_call_id=call_id[:128], **columns)


def start_durable_child(
    agent: ResolvedAgent,
    child_id: UUID,
    holder: str,
    *,
    parent: AgentRun,
    prompt: str,
    call_id: str,
    options: Mapping[str, Any],
) -> AgentRun:
    """Create a child run of a durable run, which belongs to the process of its parent."""
    columns = {"pk": child_id, "parent_call_id": call_id[:128], **leases.claim_columns(holder)}
    return save_child(agent, parent, prompt, options, **columns)


def save_child(
    agent: ResolvedAgent, parent: AgentRun, prompt: str, options: Mapping[str, Any], **columns: Any
) -> AgentRun:
    agent = with_variants(agent, parent.facts, parent.request_context)
    run_input = build_input(prompt, options, [], parent.request_context) | context_input(agent, parent.facts)
    run_input, warnings = fill_input(agent, run_input, [])
    if "experiment" in parent.input:
        run_input["experiment"] = parent.input["experiment"]
    tree = {"parent": parent, "root_id": parent.root_id or parent.pk, "experiment_id": parent.experiment_id}
    return save_run(agent, parent.requested_by, run_input, parent.owner_id, warnings=warnings, **tree, **columns)


def fill_input(
    agent: ResolvedAgent, run_input: RunInput, warnings: list[dict[str, str]]
) -> tuple[RunInput, list[dict[str, str]]]:
    """Add the instructions that the model is told to the input of a run, and return its warnings with those.

    Raise ConfigError if a required variable is missing or a value is invalid.
    """
    filled = fill_instructions(
        agent.configuration, {**(run_input.get("requestContext") or {}), **(run_input.get(FACTS) or {})}
    )
    if filled.text != (agent.configuration.get("instructions") or ""):
        run_input = {**run_input, "instructions": filled.text}
    return run_input, [*warnings, *(warning._asdict() for warning in filled.warnings)]


def build_input(
    messages: Any,
    options: Mapping[str, Any],
    client_tools: list[dict[str, Any]],
    request_context: Mapping[str, Any],
    memory_options: Mapping[str, Any] = MappingProxyType({}),
) -> RunInput:
    """Return the input of a run as its row stores it. Raise ConfigError if it is invalid or too large."""
    run_input: RunInput = {"messages": parse_messages(messages), "options": dict(options)}
    if client_tools:
        run_input["clientTools"] = client_tools
    if request_context:
        run_input["requestContext"] = dict(request_context)
    if memory_options:
        run_input["memory"] = dict(memory_options)
    if len(json.dumps(run_input, ensure_ascii=False).encode()) > settings.RUN_MAX_INPUT:
        maximum = settings.RUN_MAX_INPUT // 1024
        message = f"The messages, options, tools and request context of a run must not exceed {maximum} KB together."
        raise ConfigError([Issue("messages", message)])
    return run_input


def reject_taken_tool_names(agent: ResolvedAgent, client_tools: list[dict[str, Any]]) -> None:
    """Raise ConfigError if a client tool has the name of a tool of the agent. A model could not distinguish them."""
    taken = {*tool_names(agent.configuration, agent.owner_id)} if client_tools else set()
    names = [tool["name"] for tool in client_tools if tool["name"] in taken]
    if names:
        raise ConfigError([Issue(f"clientTools.{name}", TAKEN_TOOL_NAME_MESSAGE) for name in names])


def lock_and_check_limits(agent: ResolvedAgent, user: User | None) -> None:
    """Lock the runs of the user and of the agent. Raise TooManyRuns if either has too many unfinished ones.

    Other users can start runs of other agents meanwhile.
    """
    reject_limits(agent, user, lock_runs(agent, user))


def lock_runs(agent: ResolvedAgent, user: User | None) -> bool:
    """Lock the runs of the user and of the agent. Return whether too many runs of the user wait for people.

    Raise Agent.DoesNotExist or AgentArchived.
    """
    # All callers lock the user first. Otherwise two of them could wait for each other.
    if user is not None:
        lock_name(f"runs of user {user.pk}")
    if agent.source == "code":
        lock_name(f"runs of agent {agent.id}")
        limit = settings.RUNS_SUSPENDED_PER_USER
        return suspended_runs(id_or_zero(user))[limit - 1 : limit].exists()
    # The lock also keeps the agent from being deleted.
    row = locked_agent_of_run.first(settings.RUNS_SUSPENDED_PER_USER, agent_id=agent.id, user_id=id_or_zero(user))
    if row is None:
        raise Agent.DoesNotExist
    reject_archived(row)
    return bool(vars(row)["has_many_suspended"])


def id_or_zero(user: User | None) -> int:
    """Return the ID of the user of a run, or for trusted code 0, which no user has."""
    return 0 if user is None else user.pk


def reject_limits(agent: ResolvedAgent, user: User | None, has_many_suspended: bool) -> None:
    """Raise TooManyRuns if the user or the agent has too many unfinished runs, or the user too many that wait."""
    leased = leased_runs_of(user_id=id_or_zero(user), agent_id=agent.id)
    if has_many_suspended:
        raise TooManyRuns(
            f"You have {settings.RUNS_SUSPENDED_PER_USER} runs that wait for approval. "
            "Decide the calls that they wait for, or stop some of them."
        )
    if user is not None and sum(user_id == user.pk for user_id, _ in leased) >= settings.RUNS_PER_USER:
        raise TooManyRuns(
            f"You have reached the limit of {settings.RUNS_PER_USER} unfinished runs. Wait for one, or stop one."
        )
    if sum(key == agent.id for _, key in leased) >= settings.RUNS_PER_AGENT:
        raise TooManyRuns(
            f"This agent has reached its limit of {settings.RUNS_PER_AGENT} unfinished runs. Try again shortly."
        )


def find_memory(agent: ResolvedAgent, user: User | None, name: ThreadName) -> dict[str, Any]:
    """Return the thread and the resource of a run as columns, without a user or memory none.

    Raise ThreadActive if another run of the thread is active, and Forbidden if it belongs to another resource.
    """
    key, resource, title, metadata = name
    if user is None:
        return {}
    is_bound = bool(getattr(user, "api_key", None) and user.api_key.resource)  # type: ignore[attr-defined]
    if not (key or resource or is_bound):
        return {}
    caller = memory_caller(user)
    if not key:
        return {"resource": get_or_create_resource(caller, caller.resource_to_write(resource))}
    agent_id = agent.id if agent.source == "stored" else None
    columns = {"agent_id": agent_id, "agent_key": agent.id, "title": title, "metadata": metadata}
    thread = open_thread(caller, key, resource, **columns)
    # `open_thread` has locked the row of the thread, so that of two requests only one starts a run.
    if (active := active_run_id(thread)) is not None:
        raise ThreadActive(key, active)
    return {"thread": thread, "resource_id": thread.resource_id}


def active_run_id(thread: Thread) -> UUID | None:
    """Return the ID of the run that a process executes in a thread, or None. The caller has locked the thread."""
    return AgentRun.objects.leased().filter(thread=thread, parent=None).values_list("pk", flat=True).first()


def without_known_messages(run_input: RunInput, thread: Thread | None) -> RunInput:
    """Return the input without the messages whose IDs the thread has. The last message always stays."""
    *earlier, last = run_input["messages"]
    keys = [message["id"] for message in earlier if "id" in message] if thread else []
    known = known_keys(thread, keys) if thread and keys else set()
    if not known:
        return run_input
    return {**run_input, "messages": [*(item for item in earlier if item.get("id") not in known), last]}


def insert_run(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, *, is_durable: bool, **columns: Any
) -> AgentRun:
    """Save a run and have it executed after the commit."""
    if is_durable:
        return insert_durable_run(agent, user, run_input, **columns)
    engine = get_engine()
    run = save_run(agent, user, run_input, agent.owner_id, **leases.start_columns(engine.holder), **columns)
    transaction.on_commit(lambda: engine.submit(run))
    return run


def insert_durable_run(agent: ResolvedAgent, user: User | None, run_input: RunInput, **columns: Any) -> AgentRun:
    """Save a durable run, which this process executes if the runner says so. Otherwise another one claims it."""
    runner = get_runner()
    if (engine := runner.find_local_engine()) is None:
        run = save_run(agent, user, run_input, agent.owner_id, **leases.queue_columns(), **columns)
        transaction.on_commit(lambda: runner.dispatch(run.pk))
        return run
    claimed_at = time.monotonic()
    run = save_run(agent, user, run_input, agent.owner_id, **leases.claim_columns(engine.holder), **columns)
    transaction.on_commit(lambda: engine.submit_claimed(run, claimed_at))
    return run


def queue_run(agent: ResolvedAgent, user: User | None, run_input: RunInput, **columns: Any) -> AgentRun:
    """Save a durable run, which some process executes after the commit, even if this one stops."""
    run = insert_row(agent, user, run_input, agent.owner_id, **leases.queue_columns(), **columns)
    transaction.on_commit(lambda: get_runner().dispatch(run.pk))
    return run


def save_run(agent: ResolvedAgent, user: User | None, run_input: RunInput, owner_id: str, **columns: Any) -> AgentRun:
    """Save the row of a run. Raise Unavailable while this process stops."""
    if get_engine().is_stopping:
        raise Unavailable("This server is about to stop. Try again shortly.")
    return insert_row(agent, user, run_input, owner_id, **columns)


def insert_row(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, owner_id: str, **columns: Any
) -> AgentRun:
    """Insert the row of a run."""
    run = AgentRun(
        agent_id=agent.id if agent.source == "stored" else None,
        agent_key=agent.id,
        owner_id=owner_id,
        agent_owner_id=agent.owner_id,
        target=agent.target,
        version_id=agent.version_id,
        version_number=agent.version_number,
        configuration=dict(agent.configuration),
        requested_by=user,
        requested_by_name=user.get_username() if user else "",
        input=run_input,
        traceparent=traceparent_to_store("start run"),
        **columns,
    )
    if run.root_id is None:
        run.root_id = run.pk
    run.save(force_insert=True)
    if (thread_id := run.thread_id) is not None:
        transaction.on_commit(lambda: notifier.notify({thread_channel(thread_id): False}))
    return run


def cancel_run(run: AgentRun) -> None:
    """Cancel a run that waits, or ask its process to cancel it. A finished run stays unchanged."""
    leases.cancel(run.pk)
