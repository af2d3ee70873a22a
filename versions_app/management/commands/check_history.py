"""Check now that the history keeps its promises."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs_app import runner
from versions_app.integrity.check import CHECK_HISTORY


class Command(BaseCommand):
    help = "Checks every pointer, number, hash and picture and the trigger; exits with 1 where a fault is left."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="mend what can be mended without losing anything")

    def handle(self, *args: Any, repair: bool, **options: Any) -> None:
        job = runner.run_now(CHECK_HISTORY, {"repair": repair})
        if not isinstance(job.result, dict):
            raise CommandError(f"The job failed: {job.error or 'another worker took it over'}")
        result = job.result
        for fault in result["faults"]:
            said = "repaired" if fault["repaired"] else "fault"
            self.stdout.write(f"{said}: {fault['agentId'] or 'the database'}: {fault['message']}")
        self.stdout.write(f"{result['agents']} agents and {result['versions']} versions checked.")
        if left := result["found"] - result["repaired"]:
            raise CommandError(f"{left} faults are left. docs/operations.md says what each means.")
