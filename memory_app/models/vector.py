"""Vectors of messages, by which agents recall them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from memory_app.models.message import Message
from memory_app.models.resource import Resource
from memory_app.models.thread import Thread

MAX_EMBEDDER_LENGTH = 128


class Vector(models.Model):
    """The vector of a part of a message, as signed bytes. Vectors of different embedders cannot be compared."""

    message = models.ForeignKey(Message, models.CASCADE, editable=False, related_name="vectors", db_index=False)
    part = models.PositiveSmallIntegerField(editable=False)
    embedder = models.CharField(max_length=MAX_EMBEDDER_LENGTH, editable=False)
    # Those of the message, so that a search reads only this table.
    resource = models.ForeignKey(
        Resource, models.CASCADE, null=True, editable=False, related_name="vectors", db_index=False
    )
    thread = models.ForeignKey(Thread, models.CASCADE, editable=False, related_name="vectors", db_index=False)
    scale = models.FloatField(editable=False, help_text="Each number of the vector is its byte times this.")
    data = models.BinaryField(editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["message", "part", "embedder"], name="one_vector_per_part_and_embedder")
        ]
        # The foreign keys come first, so that these indexes also find what is deleted with a resource or a thread.
        indexes: ClassVar = [
            models.Index(fields=["resource", "embedder", "-message"], name="vector_of_resource"),
            models.Index(fields=["thread", "embedder", "-message"], name="vector_of_thread"),
        ]

    def __str__(self) -> str:
        return f"part {self.part} of message {self.message_id} by {self.embedder}"
