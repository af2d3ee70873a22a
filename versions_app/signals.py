"""What a save sets off: the whole story."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from agents_app.models import Agent
from versions_app.models import AgentVersion


@receiver(post_save, sender=Agent)
def record_version(instance: Agent, raw: bool, **kwargs: Any) -> None:
    """Keep every saved change of an agent as a version."""
    if not raw:  # a fixture brings its own versions
        AgentVersion.objects.record(instance)


@receiver(post_save, sender=AgentVersion)
def enforce_retention(instance: AgentVersion, created: bool, raw: bool, **kwargs: Any) -> None:
    """Let a new version push out the oldest over the limit."""
    if created and not raw:
        AgentVersion.objects.prune(instance.agent)
