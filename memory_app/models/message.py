"""Messages of a conversation."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory_app.models.thread import Thread


class Message(models.Model):
    """One message of a thread, in the JSON format of pydantic-ai.

    An answer with its tool calls and their results is several rows, which the API shows as one message.
    """

    class Role(models.TextChoices):
        USER = "user", "User"
        ASSISTANT = "assistant", "Assistant"
        TOOL = "tool", "Tool results"
        SIGNAL = "signal", "Signal"

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="messages", editable=False)
    number = models.PositiveIntegerField(editable=False)
    # These are null or blank in rows that the previous release wrote after the migration.
    key = models.CharField("message ID", max_length=256, null=True, editable=False)
    role = models.CharField(max_length=16, choices=Role, blank=True, default="", db_default="", editable=False)
    head_number = models.PositiveIntegerField(
        null=True, editable=False, help_text="The number of the first row of the message that the API shows."
    )
    data = models.JSONField(editable=False)
    text = models.TextField(blank=True, default="", db_default="", editable=False)
    tokens = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+")
    author_name = models.CharField(max_length=150, blank=True, default="", db_default="", editable=False)
    attributes = models.JSONField(null=True, editable=False, help_text="Metadata that the API client stored.")
    run_id = models.UUIDField(null=True, editable=False)  # not a foreign key: runs are deleted before threads
    seen_by = models.UUIDField(
        null=True, editable=False, help_text="The run whose model was given this signal. Empty for one that waits."
    )
    # How a signal reaches the agent: the run that it wakes, its options, and the reason if it never will.
    delivery = models.JSONField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        # The model moved here from runs_app, and its table stayed.
        db_table = "runs_app_message"
        ordering: ClassVar = ["thread_id", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "number"], name="one_message_per_thread_and_number"),
            models.UniqueConstraint(fields=["thread", "key"], name="one_message_per_thread_and_key"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["key"], name="message_key"),
            # Runs of a thread look before each request of the model. Signals are few.
            models.Index(fields=["thread", "seen_by"], name="signal_of_thread", condition=Q(role="signal")),
        ]

    def __str__(self) -> str:
        return f"{self.number} of {self.thread_id}"
