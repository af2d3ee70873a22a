"""The command that records agents changed outside the application."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from django.core.management.base import BaseCommand, CommandError

from agentcms.plural import pluralize
from agents_app.editing.change_context import change
from agents_app.models import Agent
from versions_app.integrity.check import CATCH_UP_MESSAGE, UNREADABLE, reindex_agent
from versions_app.models import AgentVersion


class Command(BaseCommand):
    help = """Records a version of every agent whose row differs from its head, for example after fixtures or raw SQL,
    and updates the search index. Fails at the end if an agent has a version that cannot be read."""

    def handle(self, *args: object, **options: object) -> None:
        counts: Counter[str] = Counter()
        with change(message=CATCH_UP_MESSAGE):
            for agent in Agent.objects.with_versions().prefetch_related("index").order_by("pk").iterator(500):
                try:
                    with suppress(Agent.DoesNotExist):  # deleted in the meantime
                        counts["recorded"] += AgentVersion.objects.record(agent) is not None
                        counts["indexed"] += reindex_agent(agent)
                except UNREADABLE as error:
                    counts["unreadable"] += 1
                    self.stderr.write(f"Agent '{agent.pk}' was left out: a version of it cannot be read ({error}).")
        self.stdout.write(f"Recorded {pluralize(counts['recorded'], 'version')}.")
        if counts["indexed"]:
            self.stdout.write(f"Reindexed {pluralize(counts['indexed'], 'agent')}.")
        if counts["unreadable"]:
            left_out = pluralize(counts["unreadable"], "agent")
            raise CommandError(f"{left_out} left out. Run check_history: it names the versions that are damaged.")
