"""What a save sets off here."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from runs_app import providers
from runs_app.providers import ModelProvider


@receiver([post_save, post_delete], sender=ModelProvider)
def forget_providers(**said: Any) -> None:
    """Let this process believe a change of the providers at once; the others do within a second."""
    providers.forget()
