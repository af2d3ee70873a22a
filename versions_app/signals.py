"""What a save sets off: a version, which moves the pointers and pushes out the oldest over the limit (`move`)."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.db.models.signals import post_save
from django.dispatch import receiver

from agents_app.models import Agent
from versions_app.models import AgentVersion


# Not `sender=Agent`: a proxy of a model sends as itself.
@receiver(post_save)
def record_version(sender: type[Model], instance: Any, raw: bool, **kwargs: Any) -> None:
    """Keep every saved change of an agent as a version."""
    if issubclass(sender, Agent) and not raw:  # a fixture brings its own versions
        AgentVersion.objects.record(instance)
