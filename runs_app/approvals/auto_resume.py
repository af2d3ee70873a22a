"""Answers to tools that wait for data, found in the next message of the same conversation.

A call that waits for approval is never decided so.
"""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import F

from agentcms.db.connections import return_connection
from agentcms.errors import ApiError
from memory_app.models import Thread
from memory_app.realms import memory_caller
from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.approvals.errors import InvalidDecision
from runs_app.approvals.lookup import waiting_calls_below
from runs_app.approvals.repeated_requests import RequestKey, find_answered_call, message_key
from runs_app.engine.engine import get_engine
from runs_app.engine.start.idempotency import require_role_to_repeat, runs_of_key
from runs_app.engine.thread_pools import run_blocking, run_db
from runs_app.models import AgentRun, PendingCall
from runs_app.requests.messages import InputMessage

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from runs_app.resolution import ResolvedAgent

log = logging.getLogger(__name__)

READER_MODULE = "runs_app.building.answer_reader"
READER_TIMEOUT = 10.0  # seconds for the request to the model
MAX_SUSPENDED_CANDIDATES = 2  # with more than one, nothing is resumed


def resume_by_message(
    agent: ResolvedAgent,
    user: User,
    thread: str,
    resource: str,
    messages: list[InputMessage],
    key_id: UUID | None = None,
) -> tuple[AgentRun, PendingCall] | None:
    """Answer the tool that waits in a conversation with its next message. Return None if the message is not an answer.

    One request to the model of the agent reads the answer. The run of the tool goes on if there is one. `key_id` is
    the ID that the idempotency key of the message gives to its run. A second message with the same key returns what
    the first one has answered. Raise Unprocessable if that was another message, and RoleRequired if the user has lost
    the role that it needed.
    """
    key = None if key_id is None else message_key(key_id, agent.id, thread, resource, messages)
    if key is not None and (answered := find_answered_call(key)) is not None:
        require_role_to_repeat(user, answered[0])
        return answered
    if key is not None and runs_of_key(key.id).exists():
        return None  # the first message with this key was not an answer
    question = find_question(agent, user, thread, resource)
    text = last_text(messages)
    return answer_question(agent, user, *question, text, key) if question is not None and text else None


def answer_question(
    agent: ResolvedAgent, user: User, run: AgentRun, call: PendingCall, text: str, key: RequestKey | None
) -> tuple[AgentRun, PendingCall] | None:
    """Answer a waiting call with a text. Return None if the text is not an answer."""
    try:
        data = ask_model(agent, call, text)
        if data is None:
            return None
        decision = Decision(Verdict.RESUME, resume_data=data)
        return run, decide_pending_call(call, decision, user, PendingCall.Via.MESSAGE, key)
    except (ApiError, InvalidDecision) as error:
        log.info("The message did not answer call %s: %s", call.pk, error)
        return None if key is None else find_answered_call(key)  # a concurrent message with the same key was first


def find_question(agent: ResolvedAgent, user: User, thread: str, resource: str) -> tuple[AgentRun, PendingCall] | None:
    """Return the only run of a conversation that waits for data, with its only call, or None."""
    caller = memory_caller(user)
    runs = AgentRun.objects.suspended().filter(
        requested_by=user,
        agent_key=agent.id,
        parent=None,
        thread__in=Thread.objects.for_caller(caller).filter(key=thread),  # keys of a user may serve several realms
        thread__resource_key=caller.resource_to_write(resource),
        resource=F("thread__resource"),  # a run that waited while its thread was transferred is that of another person
    )
    candidates = list(runs.without_large_columns()[:MAX_SUSPENDED_CANDIDATES])
    waiting = waiting_calls_below(candidates[0]) if len(candidates) == 1 else []
    if len(waiting) != 1:
        return None
    call = waiting[0].call
    is_question = call.kind == PendingCall.Kind.SUSPEND and (call.resume_schema or {}).get("type") == "object"
    may_decide = is_question and PendingCall.objects.decidable_by(user).filter(pk=call.pk).exists()
    return (candidates[0], call) if may_decide else None


def last_text(messages: list[InputMessage]) -> str:
    """Return the text of the last message if it is one of the user."""
    last = messages[-1]
    return " ".join(part["text"] for part in last["content"]) if last["role"] == "user" else ""


def ask_model(agent: ResolvedAgent, call: PendingCall, text: str) -> object:
    """Return the data that a text contains, or None if it contains none or the model could not be asked."""

    async def ask() -> object:
        reader = await run_blocking(import_module, READER_MODULE)  # imports pydantic-ai, which is heavy
        built = await run_db(agent.build)
        async with asyncio.timeout(READER_TIMEOUT):
            return await reader.read_reply(built.agent.model, call.tool, call.payload, call.resume_schema, text)

    return_connection()
    try:
        return asyncio.run_coroutine_threadsafe(ask(), get_engine().loop).result()
    except Exception:  # the model is not available, for example; the message then starts an ordinary run
        log.warning("The message could not be read as an answer to call %s.", call.pk, exc_info=True)
        return None
