"""The one door to a run: who may, how many at once, and the row that holds all it needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from access_app.permissions import require_role
from access_app.role import Role
from agentcms.errors import ApiError, Unavailable, Unprocessable
from agentcms.wire.canonical import canonical, sha256_hex
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.models import Agent
from runs_app.building.tool_names import tool_names
from runs_app.engine.engine import engine
from runs_app.events.notifications import wakeups
from runs_app.models import AgentRun, Thread
from runs_app.models.run import LEASE
from runs_app.requests.messages import read_messages
from runs_app.resolution import ResolvedAgent

IDEMPOTENT_RUN_NAMESPACE = UUID(
    "0d9f9a52-3c1f-5f0e-9d7e-6a1c2b8f4e11"
)  # the namespace of runs that are asked for with a key
RETRY_AFTER = 2  # seconds


RunInput = dict[str, Any]  # the messages, options and client tools of a run, as its row keeps them


class TooManyRuns(ApiError):
    """429: so many runs are not over that no other may begin."""

    def __init__(self, sentence: str) -> None:
        super().__init__(429, sentence, "too_many_runs", headers={"Retry-After": str(RETRY_AFTER)})


def start(
    stored: ResolvedAgent,
    *,
    user: Any,
    messages: Any,
    options: Mapping[str, Any] | None = None,
    client_tools: list[dict[str, Any]] | None = None,
    thread: str = "",
    resource: str = "",
    key: str = "",
) -> AgentRun:
    """Store a run and let this process answer it once it is committed.

    `messages` is a text or a conversation in any form that `read_messages` knows, `options` is what `read_options`
    made of them. The same `key` of the same user names the same run again. Raises RoleRequired, ShapeError for the
    messages and the names of client tools, TooManyRuns, and Agent.DoesNotExist for an agent that vanished. A user that
    is None is trusted code.
    """
    if user is not None:
        require_role(user, Role.EDITOR, stored.owner_id)
    asked = read_input(messages, options or {}, client_tools or [])
    refuse_taken_names(stored, client_tools or [])
    conversation = (thread, resource)
    return (
        start_idempotently(stored, user, asked, conversation, key) if key else store(stored, user, asked, conversation)
    )


def start_idempotently(
    stored: ResolvedAgent, user: Any, asked: RunInput, conversation: tuple[str, str], key: str
) -> AgentRun:
    """The run that a key names: a new one, or the one that it was first used for."""
    run_id = uuid5(IDEMPOTENT_RUN_NAMESPACE, f"{user.pk if user else ''} {key}")
    # What is live may move between two tries of one request: the version counts where the caller named it.
    version = str(stored.version_id) if stored.target == AgentRun.Target.VERSION else ""
    mark = sha256_hex(canonical([stored.id, stored.target, version, asked, conversation]))
    mine = AgentRun.objects.filter(pk=run_id)
    if (known := mine.first()) is None:
        try:
            return store(stored, user, {**asked, "mark": mark}, conversation, pk=run_id)
        except IntegrityError:  # a request with the same key was a moment earlier
            if (known := mine.first()) is None:
                raise
    if known.input.get("mark") != mark:
        raise Unprocessable("This Idempotency-Key was used for another request.", "key_reused")
    return known


def store(
    stored: ResolvedAgent, user: Any, asked: RunInput, conversation: tuple[str, str], **columns: Any
) -> AgentRun:
    """The row, if the limits leave room for it."""
    with transaction.atomic():
        lock_and_check_limits(stored, user)
        return insert(stored, user, asked, thread=find_thread(stored, user, *conversation), **columns)


def start_child(stored: ResolvedAgent, *, parent: AgentRun, prompt: str, call_id: str) -> AgentRun:
    """Store a run that another run asks for; who carries the parent carries it."""
    asked = read_input(prompt, {}, [])
    return insert(stored, parent.requested_by, asked, parent=parent, parent_call_id=call_id[:128], taken=True)


def read_input(messages: Any, options: Mapping[str, Any], client_tools: list[dict[str, Any]]) -> RunInput:
    """What a run is asked, as its row keeps it. Raises ShapeError."""
    asked: RunInput = {"messages": read_messages(messages), "options": dict(options)}
    if client_tools:
        asked["clientTools"] = client_tools
    if len(json.dumps(asked, ensure_ascii=False).encode()) > settings.RUN_MAX_INPUT:
        most = settings.RUN_MAX_INPUT // 1024
        raise ConfigError([Issue("messages", f"The messages, options and tools of a run take at most {most} KB.")])
    return asked


def refuse_taken_names(stored: ResolvedAgent, client_tools: list[dict[str, Any]]) -> None:
    """A model could not tell a tool of the caller from one of the agent. Raises ShapeError."""
    taken = {*tool_names(stored.configuration)} if client_tools else set()
    said = "The agent has a tool of this name itself. Give yours another name."
    if issues := [Issue(f"clientTools.{tool['name']}", said) for tool in client_tools if tool["name"] in taken]:
        raise ConfigError(issues)


def lock_and_check_limits(stored: ResolvedAgent, user: Any) -> None:
    """Lock the agent's row, so that it cannot vanish now and runs are counted one after another; then count."""
    if stored.source == "stored":
        Agent.objects.select_for_update(of=("self",), no_key=True).only("pk").get(pk=stored.id)
    asked_for = AgentRun.objects.open().filter(parent=None)
    if user is not None and asked_for.filter(requested_by=user).count() >= settings.RUNS_PER_USER:
        raise TooManyRuns(f"You have {settings.RUNS_PER_USER} runs that are not over. Wait for one, or stop one.")
    if asked_for.filter(agent_key=stored.id).count() >= settings.RUNS_PER_AGENT:
        raise TooManyRuns(f"This agent has {settings.RUNS_PER_AGENT} runs that are not over. Try again shortly.")


def find_thread(stored: ResolvedAgent, user: Any, key: str, resource: str) -> Thread | None:
    """The user's own conversation of this name with the agent; a new name begins one."""
    if not key or user is None:
        return None
    now = timezone.now()
    thread, made = Thread.objects.get_or_create(
        user=user,
        agent_key=stored.id,
        key=key,
        defaults={"agent_id": stored.id if stored.source == "stored" else None, "resource": resource},
    )
    if not made:
        Thread.objects.filter(pk=thread.pk).update(updated_at=now)
    return thread


def insert(stored: ResolvedAgent, user: Any, asked: RunInput, *, taken: bool = False, **columns: Any) -> AgentRun:
    """The row; this process carries it once it is committed, unless somebody has `taken` it."""
    holder = engine()
    if holder.is_stopping:
        raise Unavailable("This server is about to stop. Try again shortly.")
    run = AgentRun(
        agent_id=stored.id if stored.source == "stored" else None,
        agent_key=stored.id,
        owner_id=stored.owner_id,
        target=stored.target,
        version_id=stored.version_id,
        version_number=stored.version_number,
        configuration=dict(stored.configuration),
        requested_by=user,
        requested_by_name=user.get_username() if user else "",
        input=asked,
        holder=holder.holder,
        lease_until=timezone.now() + LEASE,
        **columns,
    )
    run.save(force_insert=True)
    if not taken:
        transaction.on_commit(lambda: holder.submit(run.pk))
    return run


def cancel(run: AgentRun) -> None:
    """Ask whoever carries a run to stop it; one that is over stays as it is."""
    held = AgentRun.objects.filter(pk=run.pk, status__in=AgentRun.HELD, cancel_requested_at__isnull=True)
    held.update(cancel_requested_at=timezone.now())
    wakeups.request_cancel(run.pk)
