"""Let the history catch up with rows that changed outside the application."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from agents_app.changes import change
from agents_app.models import Agent
from versions_app.models import AgentVersion


class Command(BaseCommand):
    help = "Records a version of every agent whose row is not its head's picture, as after fixtures or raw SQL."

    def handle(self, *args: Any, **options: Any) -> None:
        caught_up = 0
        with change(message="Caught up with changes made outside the application"):
            for agent in Agent.objects.order_by("pk").iterator(chunk_size=500):
                caught_up += AgentVersion.objects.record(agent) is not None
        self.stdout.write(f"Recorded {caught_up} version{'' if caught_up == 1 else 's'}.")
