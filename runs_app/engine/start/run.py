"""The start of a run: permission, idempotency key, input, memory and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID, uuid5

from django.db import IntegrityError, transaction
from django.db.models import Q

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.errors import KEY_REUSED_MESSAGE, Unprocessable
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.unknown_names import UnknownName
from agents_app.configuration.schema import ConfigError, Issue
from runs_app.engine.durability import find_durability
from runs_app.engine.start.concurrency_limits import lock_and_check_limits
from runs_app.engine.start.input import (
    RunInput,
    build_input,
    fill_input,
    reject_taken_tool_names,
    without_known_messages,
)
from runs_app.engine.start.memory import ThreadActive, ThreadName, memory_columns, reject_missing_thread
from runs_app.engine.start.rows import insert_run
from runs_app.models import AgentRun
from runs_app.requests.facts import FACTS, for_caller
from runs_app.requests.memory import MemoryCall, find_wider_options
from runs_app.resolution import ResolvedAgent
from runs_app.stop_conditions import STOP_WHEN, find_stop_condition

if TYPE_CHECKING:
    from django.contrib.auth.models import User

IDEMPOTENCY_NAMESPACE = UUID("0d9f9a52-3c1f-5f0e-9d7e-6a1c2b8f4e11")  # existing rows have IDs of it
WHOLE_USER = (None, "")  # realm and resource of an API key without limits
DIGEST_KEY = "mark"  # of the input of a run with an idempotency key; existing rows have this name


class ExperimentItem(NamedTuple):
    """An item of an experiment that starts a run. `options` are its `toolMocks` and `unmockedToolPolicy`."""

    experiment_id: UUID
    options: Mapping[str, Any]


def start_run(
    agent: ResolvedAgent,
    *,
    user: Caller | None,
    messages: object,
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
    stop_when: str = "",
    ends_only: bool = False,
) -> AgentRun:
    """Create a run. After the commit, this process or another one executes it.

    `messages` is a text or a conversation in a form that `parse_messages` accepts. `options` are validated options.
    A second call with the same `key` and user returns the same run. `user` is None for trusted code.
    `memory` narrows the memory of the agent. `request_context` are the values of its variables.
    `warnings` become warnings of the run. `experiment` says that an experiment starts the run. The limits of users
    and agents do not apply to it then. `facts` about a caller to try with take the place of those of the user.
    `stop_when` is the name of a stop condition.
    `ends_only` says that the caller waits for the end of the run, and does not read its events meanwhile.
    Raise RoleRequired, ConfigError, TooManyRuns, or Agent.DoesNotExist or AgentArchived if the agent was deleted or
    archived meanwhile.
    """
    requester = require_run_editor(user, agent)
    agent, context = for_caller(agent, user, request_context or {}, facts)
    durability = find_durability(agent, {**(options or {}), **stop_options(stop_when)})
    run_input = build_input(messages, durability.options, client_tools or [], request_context or {}, memory.options)
    run_input |= context | ({"experiment": experiment.options} if experiment is not None else {})
    columns = {**run_columns(durability.is_durable, warnings, experiment), "ends_only": ends_only}
    return start_idempotently(agent, requester, run_input, ThreadName.of(thread, resource, memory), key, **columns)


def require_run_editor(user: Caller | None, agent: ResolvedAgent) -> User | None:
    """Return the user of a new run, or None for trusted code. Raise RoleRequired."""
    if user is not None:
        require_role(user, Role.EDITOR, agent.owner_id)
    return cast("User | None", user)  # anonymous users have no role


def stop_options(name: str) -> dict[str, str]:
    """Return the option with the name of a stop condition, if there is one. Raise ConfigError if it is unknown."""
    if name and find_stop_condition(name) is None:
        raise ConfigError(
            [Issue(STOP_WHEN, f"There is no stop condition '{name}'. Register it with @stop_condition.")]
        )
    return {STOP_WHEN: name} if name else {}


def run_columns(
    is_durable: bool, warnings: Sequence[UnknownName], experiment: ExperimentItem | None
) -> dict[str, Any]:
    """Return the columns of a new run that come from its call."""
    columns = {"warnings": [warning._asdict() for warning in warnings], "is_durable": is_durable}
    return columns if experiment is None else {**columns, "experiment_id": experiment.experiment_id}


def start_idempotently(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, thread: ThreadName, key: str, **columns: Any
) -> AgentRun:
    """Return the run of an idempotency key. The first call creates it, and so does each call without a key."""
    if not key:
        return create_run(agent, user, run_input, thread, **columns)
    key_id = idempotency_id(user, key)
    # The live version may change between two attempts, so only a version that the caller named counts.
    version = str(agent.version_id) if agent.target == AgentRun.Target.VERSION else ""
    # The variants that were chosen are part of the mark, the facts behind them are not.
    marked = {name: value for name, value in run_input.items() if name != FACTS}
    digest = sha256_hex(canonical([agent.id, agent.target, version, marked, [thread.key, thread.resource]]))
    # It is the ID of a run of the previous release.
    runs = AgentRun.objects.filter(Q(idempotency_id=key_id) | Q(pk=key_id))
    if (run := runs.first()) is None:
        try:
            return create_run(agent, user, {**run_input, DIGEST_KEY: digest}, thread, idempotency_id=key_id, **columns)
        except (IntegrityError, ThreadActive):  # a concurrent request with the same key was first
            if (run := runs.first()) is None:
                raise
    if run.input.get(DIGEST_KEY) != digest:
        raise Unprocessable(KEY_REUSED_MESSAGE, "key_reused")
    return run


def idempotency_id(user: User | None, key: str) -> UUID:
    """Return a UUID that stands for an idempotency key of a user, or of whom an API key of the user serves."""
    api_key = getattr(user, "api_key", None)
    served = (api_key.realm_owner, api_key.resource) if api_key is not None else WHOLE_USER
    # Two end users of a service may choose the same key. One must not get the run of the other.
    scope = "" if served == WHOLE_USER else f" {canonical([*served])}"
    return uuid5(IDEMPOTENCY_NAMESPACE, f"{user.pk if user else ''}{scope} {key}")


def create_run(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, thread: ThreadName, **columns: Any
) -> AgentRun:
    """Create a run if the limits allow it. Raise TooManyRuns otherwise.

    Raise ConfigError for missing variables, and for client tools with the name of a tool of the agent.
    """
    reject_taken_tool_names(agent, run_input.get("clientTools", []))
    wider = find_wider_options(agent.configuration.get("memory"), run_input.get("memory") or {})
    warnings = [*columns.get("warnings", []), *(option._asdict() for option in wider)]
    run_input, columns["warnings"] = fill_input(agent, run_input, warnings)
    reject_missing_thread(agent, run_input, thread)
    with transaction.atomic():
        if "experiment_id" in columns:  # the experiment counts its runs, which do not use the memory of its user
            thread = thread._replace(has_default=False)
        else:
            lock_and_check_limits(agent, user)
        memory = memory_columns(agent, user, thread)
        run_input = without_known_messages(run_input, memory.get("thread"))
        return insert_run(agent, user, run_input, **memory, **columns)
