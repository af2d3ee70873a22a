"""The command that checks the integrity of all histories."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs_app import runner
from versions_app.integrity.check import CHECK_HISTORY


class Command(BaseCommand):
    help = "Checks every pointer, number, hash, snapshot and trigger. Exits with 1 if a fault remains."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="repair what can be repaired without losing data")

    def handle(self, *args: object, repair: bool, **options: object) -> None:
        job = runner.run_now(CHECK_HISTORY, {"repair": repair})
        if not isinstance(job.result, dict):
            raise CommandError(f"The job failed: {job.error or 'another worker took it over'}")
        result = job.result
        for fault in result["faults"]:
            label = "repaired" if fault["repaired"] else "fault"
            self.stdout.write(f"{label}: {fault['agentId'] or 'the database'}: {fault['message']}")
        self.stdout.write(f"{result['agents']} agents and {result['versions']} versions checked.")
        if remaining := result["found"] - result["repaired"]:
            raise CommandError(f"{remaining} faults remain. docs/operations.md explains each kind.")
