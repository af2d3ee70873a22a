"""Observations, which take the place of older messages in what a model is given."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from memory_app.models.thread import Thread


class Observation(models.Model):
    """The notes of a model about the messages `first` to `last` of a thread.

    The rows of a generation cover the messages without a gap. A reflection condenses the rows of a generation, and
    begins the next one.
    """

    thread = models.ForeignKey(Thread, models.CASCADE, editable=False, related_name="observations", db_index=False)
    generation = models.PositiveIntegerField(default=0, editable=False)
    first = models.PositiveIntegerField("first message", editable=False)
    last = models.PositiveIntegerField("last message", editable=False)
    text = models.TextField(editable=False)
    tokens = models.PositiveIntegerField(editable=False)
    message_tokens = models.PositiveIntegerField(editable=False, help_text="Of what the text stands for.")
    is_active = models.BooleanField(
        "active", default=False, editable=False, help_text="The model is given the text in place of the messages."
    )
    model = models.CharField(max_length=256, blank=True, default="", editable=False)
    usage = models.JSONField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["thread_id", "generation", "first"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "generation", "first"], name="one_observation_per_first_message")
        ]

    def __str__(self) -> str:
        return f"messages {self.first} to {self.last}"

    @property
    def is_reflection(self) -> bool:
        """True if the text condenses the observations of the generation before."""
        return self.generation > 0 and self.first == 1
