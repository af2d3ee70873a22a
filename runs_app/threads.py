"""Conversations that an agent remembers: stored apart from runs, so that runs may be pruned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.db import models, transaction
from django.db.models import Max
from django.utils import timezone

from agents_app.models import Agent


class Thread(models.Model):
    """One conversation of one user with one agent; whose it is never changes."""

    key = models.CharField("thread id", max_length=256, editable=False, help_text="What its user calls it.")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="threads", editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, related_name="threads", editable=False)
    agent_key = models.CharField("agent id", max_length=256, editable=False)
    resource = models.CharField(max_length=256, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-updated_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "agent_key", "key"], name="one_thread_per_user_agent_and_key")
        ]
        indexes: ClassVar = [models.Index(fields=["updated_at"], name="thread_updated")]

    def __str__(self) -> str:
        return f"{self.key} with {self.agent_key}"


class Message(models.Model):
    """One message of a thread, in pydantic-ai's JSON."""

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="messages", editable=False)
    number = models.PositiveIntegerField(editable=False)
    data = models.JSONField(editable=False)
    run_id = models.UUIDField(null=True, editable=False)  # a plain value: runs are pruned before threads
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["thread_id", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "number"], name="one_message_per_thread_and_number")
        ]

    def __str__(self) -> str:
        return f"{self.number} of {self.thread_id}"


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
