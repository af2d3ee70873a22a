"""Stored conversations. They are separate from runs, which are deleted earlier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from memory_app.models import Message, Thread

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def get_or_create_thread(user: User, agent_key: str, key: str, resource: str, *, agent_id: str | None) -> Thread:
    """Return the thread of a user and an agent with this key. The first call creates it for its resource.

    Raise Thread.DoesNotExist if the thread belongs to another resource: one user may serve many persons. A thread
    without a resource is not found with one, nor the other way round.
    """
    thread, is_new = Thread.objects.get_or_create(
        user=user, agent_key=agent_key, key=key, defaults={"agent_id": agent_id, "resource": resource}
    )
    if thread.resource != resource:
        raise Thread.DoesNotExist
    if not is_new:
        Thread.objects.filter(pk=thread.pk).update(updated_at=timezone.now())
    return thread


def load_messages(thread_id: int, limit: int) -> list[Any]:
    """Return the data of the last messages of a thread, oldest first."""
    newest = Message.objects.filter(thread=thread_id).order_by("-number").values_list("data", flat=True)[:limit]
    return [*newest][::-1]


def save_messages(thread_id: int, messages: Sequence[Any], run_id: UUID) -> None:
    """Append the messages of a run to its thread. Do nothing on a second call or if the thread was deleted."""
    with transaction.atomic():
        thread = Thread.objects.select_for_update().filter(pk=thread_id).first()
        if thread is None or thread.messages.filter(run_id=run_id).exists():
            return
        last = thread.messages.aggregate(last=Max("number"))["last"] or 0
        rows = [
            Message(thread=thread, number=number, data=data, run_id=run_id)
            for number, data in enumerate(messages, last + 1)
        ]
        Message.objects.bulk_create(rows)
        Thread.objects.filter(pk=thread_id).update(updated_at=timezone.now())
