"""Messages of a conversation."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from memory_app.models.thread import Thread


class Message(models.Model):
    """One message of a thread, in the JSON format of pydantic-ai."""

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="messages", editable=False)
    number = models.PositiveIntegerField(editable=False)
    data = models.JSONField(editable=False)
    run_id = models.UUIDField(null=True, editable=False)  # not a foreign key: runs are deleted before threads
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "runs_app_message"
        ordering: ClassVar = ["thread_id", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "number"], name="one_message_per_thread_and_number")
        ]

    def __str__(self) -> str:
        return f"{self.number} of {self.thread_id}"
