"""The start of a run: permission, variant and options of the call. `creation` checks the rest and adds the row."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import UUID

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.db.column_values import ColumnValues
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.unknown_names import UnknownName
from agents_app.configuration.schema import ConfigError, Issue
from runs_app.engine.durability import find_durability
from runs_app.engine.start.idempotency import NO_KEY, CallKey, start_idempotently
from runs_app.engine.start.input import build_input
from runs_app.engine.start.memory import ThreadName
from runs_app.models import AgentRun
from runs_app.requests.facts import adapt_to_caller
from runs_app.requests.memory import MemoryCall
from runs_app.resolution import ResolvedAgent
from runs_app.stop_conditions import STOP_WHEN, find_stop_condition

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class ExperimentItem(NamedTuple):
    """An item of an experiment that starts a run. `options` are its `toolMocks` and `unmockedToolPolicy`."""

    experiment_id: UUID
    options: JSONMapping


def start_run(
    agent: ResolvedAgent,
    *,
    user: Caller | None,
    messages: object,
    options: JSONMapping | None = None,
    client_tools: list[JSONObject] | None = None,
    thread: str = "",
    resource: str = "",
    memory: MemoryCall = MemoryCall(),  # noqa: B008  it cannot be changed
    key: CallKey = NO_KEY,
    request_context: JSONMapping | None = None,
    warnings: Sequence[UnknownName] = (),
    experiment: ExperimentItem | None = None,
    facts: JSONMapping = MappingProxyType({}),
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
    agent, context = adapt_to_caller(agent, user, request_context or {}, facts)
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


def run_columns(is_durable: bool, warnings: Sequence[UnknownName], experiment: ExperimentItem | None) -> ColumnValues:
    """Return the columns of a new run that come from its call."""
    columns = {"warnings": [warning._asdict() for warning in warnings], "is_durable": is_durable}
    return columns if experiment is None else {**columns, "experiment_id": experiment.experiment_id}
