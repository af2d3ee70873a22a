"""Support for the `Idempotency-Key` of a call: a repeated call returns the run of the first one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID, uuid5

from django.db import IntegrityError
from django.db.models import Q

from access_app.end_user_keys import served_end_users
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.errors import KEY_REUSED_MESSAGE, Unprocessable
from agentcms.wire.canonical import canonical, sha256_hex
from runs_app.engine.start.concurrency_limits import TooManyRuns
from runs_app.engine.start.creation import create_run
from runs_app.engine.start.input import RunInput
from runs_app.engine.start.memory import ThreadActive, ThreadName
from runs_app.models import AgentRun
from runs_app.models.run_queryset import AgentRunQuerySet
from runs_app.requests.facts import FACTS
from runs_app.resolution import ResolvedAgent

if TYPE_CHECKING:
    from django.contrib.auth.models import User

IDEMPOTENCY_NAMESPACE = UUID("0d9f9a52-3c1f-5f0e-9d7e-6a1c2b8f4e11")  # existing rows have IDs of it
READ_ANSWER_HINT = "Read the answer with GET /api/runs/{run}."
DIGEST_KEY = "mark"  # of the input of a run with an idempotency key; existing rows have this name


class CallKey(NamedTuple):
    """The idempotency key of a call, blank without one, and the route that the call took."""

    key: str
    route: str = ""


NO_KEY = CallKey("")


def start_idempotently(
    agent: ResolvedAgent, user: User | None, run_input: RunInput, thread: ThreadName, call: CallKey, **columns: Any
) -> AgentRun:
    """Return the run of an idempotency key. The first call creates it, and so does each call without a key."""
    if not call.key:
        return create_run(agent, user, run_input, thread, **columns)
    key_id = idempotency_id(user, call.key)
    content = call_content(agent, run_input, thread)
    digest = sha256_hex(canonical([*content, call.route]))
    runs = runs_of_key(key_id)
    if (run := runs.first()) is None:
        try:
            return create_run(agent, user, {**run_input, DIGEST_KEY: digest}, thread, idempotency_id=key_id, **columns)
        except (IntegrityError, ThreadActive, TooManyRuns):  # a concurrent request with the same key was first
            if (run := runs.first()) is None:
                raise
    # The previous release did not compare the routes.
    if run.input.get(DIGEST_KEY) not in (digest, sha256_hex(canonical(content))):
        raise Unprocessable(KEY_REUSED_MESSAGE, "key_reused")
    require_role_to_repeat(user, run)
    return run


def call_content(agent: ResolvedAgent, run_input: RunInput, thread: ThreadName) -> list[Any]:
    """Return what a repeated call must have in common with the first one."""
    # The live version may change between two attempts, so only a version that the caller named counts.
    version = str(agent.version_id) if agent.target == AgentRun.Target.VERSION else ""
    # The variants that were chosen are part of the content, the facts behind them are not.
    compared = {name: value for name, value in run_input.items() if name != FACTS}
    return [agent.id, agent.target, version, compared, [thread.key, thread.resource]]


def require_role_to_repeat(user: User | None, run: AgentRun) -> None:
    """Raise RoleRequired if a user may not run agents of the owner of an earlier run: its agent may have moved since.

    Former members read only the question and the answer of their runs.
    """
    if user is not None:
        require_role(user, Role.EDITOR, run.owner_id, READ_ANSWER_HINT.format(run=run.pk))


def runs_of_key(key_id: UUID) -> AgentRunQuerySet:
    """Return the run of an idempotency key, if there is one."""
    # The previous release used the UUID of the key as the ID of the run.
    return AgentRun.objects.filter(Q(idempotency_id=key_id) | Q(pk=key_id))


def idempotency_id(user: User | None, key: str) -> UUID:
    """Return a UUID that stands for an idempotency key of a user, or of those whom an API key of the user serves."""
    served = served_end_users(user) if user is not None else ""
    # Two end users of a service may choose the same key. One must not get the run of the other.
    scope = f" {served}" if served else ""
    return uuid5(IDEMPOTENCY_NAMESPACE, f"{user.pk if user else ''}{scope} {key}")
