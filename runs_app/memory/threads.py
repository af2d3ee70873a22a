"""Conversations that an agent remembers: stored apart from runs, so that runs may be pruned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from runs_app.models.message import Message
from runs_app.models.thread import Thread


def recall(thread_id: int, most: int) -> list[Any]:
    """The data of the last messages of a thread, oldest first."""
    newest = Message.objects.filter(thread=thread_id).order_by("-number").values_list("data", flat=True)[:most]
    return [*newest][::-1]


def remember(thread_id: int, messages: Sequence[Any], run_id: UUID) -> None:
    """Add the messages of a run to its thread, once; runs of one thread take turns. A thread that is gone stays so."""
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
