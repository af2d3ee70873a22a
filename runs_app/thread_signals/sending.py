"""Sending signals to threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import UUID

from django.conf import settings
from django.db import transaction

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.errors import ApiError, Conflict
from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONMapping, JSONObject
from memory_app.history.messages import Author
from memory_app.history.signal_markup import AttributeValue, Signal, validate_signal
from memory_app.history.thread_signals import AFTER_RUN, QUEUED, WAKES, append_signal, waiting_signals
from memory_app.history.threads import thread_not_found
from memory_app.history.turn_markup import AUTHOR_ATTRIBUTES, find_turns
from memory_app.models import Message, Thread
from runs_app.engine.start.concurrency_limits import lock_runs, reject_limits
from runs_app.engine.start.memory import active_run_id
from runs_app.events.notifications import notifier, thread_channel
from runs_app.models import AgentRun
from runs_app.requests.facts import FACTS, find_facts
from runs_app.resolution import ResolvedAgent
from runs_app.thread_signals.woken_runs import start_woken_run

if TYPE_CHECKING:
    from django.contrib.auth.models import User

RETRY_AFTER = 2  # seconds


class IfActive(StrEnum):
    """Behaviour of a signal while a run of the thread is active."""

    DELIVER = "deliver"
    PERSIST = "persist"
    DISCARD = "discard"
    QUEUE = "queue"  # it waits for a run of its own


class IfIdle(StrEnum):
    """Behaviour of a signal while no run of the thread is active."""

    WAKE = "wake"
    PERSIST = "persist"
    DISCARD = "discard"


class SentSignal(NamedTuple):
    """The signal as it was stored, or None if it was discarded, and the run that sees it, or None if none does yet."""

    run_id: UUID | None
    message: Message | None


class TooManySignals(ApiError):
    """Error 429: too many signals of the thread wait."""

    def __init__(self) -> None:
        message = (
            f"{settings.SIGNALS_UNSEEN} signals of this thread wait already. "
            "Send the next one after a run has seen them."
        )
        super().__init__(429, message, "too_many_signals", headers={"Retry-After": str(RETRY_AFTER)})


def send_signal(
    thread: Thread | Callable[[], Thread],
    signal: Signal,
    *,
    user: Caller | None,
    agent: ResolvedAgent,
    if_active: IfActive = IfActive.DELIVER,
    if_idle: IfIdle = IfIdle.WAKE,
    active_attributes: Mapping[str, AttributeValue] | None = None,
    idle_attributes: Mapping[str, AttributeValue] | None = None,
    options: JSONMapping | None = None,
) -> SentSignal:
    """Append a signal to a thread, and start a run of the agent if none is active.

    `thread` may be a function that finds or creates it. A signal that is refused or discarded leaves no new thread.
    `user` is None for trusted code. `options` are members of the input of a run that the signal wakes: its
    `options`, `requestContext` and `clientTools`. `active_attributes` and `idle_attributes` are added to those of
    the signal in that situation. A repeat with the ID of an earlier signal returns that one.
    Raise RoleRequired, ConfigError, TooManySignals, TooManyRuns, Conflict, NotFound, or Agent.DoesNotExist or
    AgentArchived if the agent was deleted or archived meanwhile.
    """
    validate_signal(signal)
    if user is not None:
        require_role(user, Role.EDITOR, agent.owner_id)
    sender = cast("User | None", user)  # anonymous users have no role
    attributes = (active_attributes or {}, idle_attributes or {})
    return Sending(signal, agent, sender, if_active, if_idle, *attributes, options or {}).send(thread)


@dataclass
class Sending:
    """A signal on its way to a thread."""

    signal: Signal
    agent: ResolvedAgent
    user: User | None
    if_active: IfActive
    if_idle: IfIdle
    active_attributes: Mapping[str, AttributeValue]
    idle_attributes: Mapping[str, AttributeValue]
    options: JSONMapping
    is_idle: bool = False  # the thread, when the signal was stored

    def send(self, thread: Thread | Callable[[], Thread]) -> SentSignal:
        """Store the signal under the lock of the thread, and start a run if none is active."""
        with transaction.atomic():
            # Before the lock of the thread, as at the start of a run: in another order, two could wait for each other.
            has_many_suspended = lock_runs(self.agent, self.user)
            named = thread() if callable(thread) else thread
            locked = Thread.objects.select_for_update(of=("self",)).filter(pk=named.pk).first()
            if locked is None:
                raise thread_not_found(named.key)
            if self.signal.id and (sent := find_sent(locked, self.signal.id)) is not None:
                return sent
            sent = self.store(locked, active_run_id(locked))
            if sent.message is None:
                transaction.set_rollback(True)
                return sent
            # The limits are those of new runs. A signal that an active run takes counts for none of them.
            if self.wakes_now(sent.message):
                reject_limits(self.agent, self.user, has_many_suspended)
                start_woken_run(locked, [sent.message])
            transaction.on_commit(lambda: notifier.notify({thread_channel(locked.pk): False}))
        return sent

    def store(self, thread: Thread, active_id: UUID | None) -> SentSignal:
        """Append the signal to the locked thread, unless it is discarded. Raise TooManySignals or Conflict."""
        self.is_idle = active_id is None
        if (self.if_idle if self.is_idle else self.if_active) == "discard":
            return SentSignal(active_id, None)
        if waiting_signals(thread.pk).count() >= settings.SIGNALS_UNSEEN:
            raise TooManySignals
        added = self.idle_attributes if self.is_idle else self.active_attributes
        signal = replace(self.signal, attributes={**self.signal.attributes, **added})
        signal = with_true_author(signal, thread, self.user)
        message = append_signal(thread, signal, author_of(self.user), self.delivery(active_id))
        return SentSignal(run_of(message), message)

    def wakes_now(self, message: Message) -> bool:
        """Return True if the stored signal starts a run at once."""
        return self.is_idle and bool((message.delivery or {})[WAKES])

    def delivery(self, active_id: UUID | None) -> JSONObject:
        """Return how the signal reaches the agent, as its row stores it."""
        is_queued = self.if_active == IfActive.QUEUE
        wakes = (self.if_idle if active_id is None else self.if_active) != "persist"
        has_new_run = is_queued or active_id is None
        run_id = (uuid7() if has_new_run else active_id) if wakes else None
        # A signal that waits gets the version that is live then, unless its sender named one.
        is_fixed = self.agent.target == AgentRun.Target.VERSION
        return {
            "agent": self.agent.id,
            "target": self.agent.target,
            "versionId": str(self.agent.version_id) if is_fixed else None,
            WAKES: wakes,
            QUEUED: is_queued,
            AFTER_RUN: None if wakes or active_id is None else str(active_id),
            "runId": str(run_id) if run_id else None,
            FACTS: find_facts(self.user, self.agent),
            **self.options,
        }


def find_sent(thread: Thread, key: str) -> SentSignal | None:
    """Return the signal that was sent with this ID, or None. Raise Conflict if another message has the ID."""
    message = thread.messages.filter(key=key).first()
    if message is None:
        return None
    if message.role != Message.Role.SIGNAL:
        raise Conflict(f"A message of the thread has the ID {key}. Use another ID for the signal.", "message_exists")
    return SentSignal(run_of(message), message)


def run_of(message: Message) -> UUID | None:
    """Return the run of the first answer to a signal."""
    run_id = (message.delivery or {}).get("runId")
    return UUID(run_id) if run_id else None


def author_of(user: User | None) -> Author:
    return Author(user.pk, user.get_username()) if user is not None else Author(None, "")


def with_true_author(signal: Signal, thread: Thread, user: User | None) -> Signal:
    """Return a signal whose attributes do not name another author. API keys for end users may name them."""
    named = [name for name in AUTHOR_ATTRIBUTES if name in signal.attributes]
    turns = find_turns(thread) if named and user is not None else None
    if turns is None or turns.speaks_for_others or user is None:
        return signal
    turn = turns.turn_of_user(user.pk, user.get_username())
    if turn is None:  # a thread of one person
        return signal
    true_values = {**turn._asdict(), "name": turn.author_name}
    return replace(signal, attributes={**signal.attributes, **{name: true_values[name] for name in named}})
