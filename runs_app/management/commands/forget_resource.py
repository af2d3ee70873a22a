"""The command that deletes all data of a resource."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs_app import runner
from memory_app.models import Thread
from memory_app.realms import is_realm
from runs_app.privacy.personal_data import FORGET
from runs_app.resources import runs_of


class Command(BaseCommand):
    help = "Deletes all data of a resource: its memory, threads, messages and runs. This cannot be undone."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("realm", help="u12 for a user, osupport for a team")
        parser.add_argument("resource", help="the ID of the resource")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: object, realm: str, resource: str, yes: bool, **options: object) -> None:
        if not is_realm(realm):
            raise CommandError("A realm is u and the ID of a user, or o and the name of a team.")
        if not yes and input(f"{self.question(realm, resource)} [y/N] ").strip().lower() != "y":
            raise CommandError("Nothing was deleted.")
        job = runner.run_now(FORGET, {"realm": realm, "resource": resource, "by": "command line"})
        if not isinstance(job.result, dict):
            raise CommandError(f"The job failed: {job.error or 'another worker took it over'}")
        counts = job.result
        self.stdout.write(
            f"Deleted {counts['threads']} threads, {counts['messages']} messages and {counts['runs']} runs."
        )

    def question(self, realm: str, resource: str) -> str:
        threads = Thread.objects.filter(realm=realm, resource_key=resource).count()
        runs = runs_of(realm, resource).count()
        return f"Delete {threads} threads and {runs} runs of {resource} in {realm}?"
