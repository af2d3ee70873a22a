"""The command that deletes all data of a resource."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentcms.plural import pluralize
from jobs_app import runner
from memory_app.models import Thread
from memory_app.realms import is_realm
from runs_app.privacy.forgetting import FORGET
from runs_app.runs_of_resources import runs_of


class Command(BaseCommand):
    help = "Deletes all data of a resource: its memory, threads, messages and runs. This cannot be undone."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("realm", help="u12 for a user, osupport for a team")
        parser.add_argument("resource", help="the ID of the resource")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: object, realm: str, resource: str, yes: bool, **options: object) -> None:
        if not is_realm(realm):
            raise CommandError("A realm is u and the ID of a user, or o and the name of a team.")
        if not yes and not self.is_confirmed(realm, resource):
            raise CommandError("Nothing was deleted.")
        job = runner.run_now(FORGET, {"realm": realm, "resource": resource, "by": "command line"})
        if not isinstance(job.result, dict):
            raise CommandError(f"The job failed: {job.error or 'another worker took it over'}")
        threads, messages, runs = (pluralize(job.result[f"{word}s"], word) for word in ("thread", "message", "run"))
        self.stdout.write(f"Deleted {threads}, {messages} and {runs}.")

    def is_confirmed(self, realm: str, resource: str) -> bool:
        """Ask, and return whether the answer is yes. Raise CommandError where nobody can answer, as in a script."""
        threads = pluralize(Thread.objects.filter(realm=realm, resource_key=resource).count(), "thread")
        runs = pluralize(runs_of(realm, resource).count(), "run")
        try:
            return input(f"Delete {threads} and {runs} of {resource} in {realm}? [y/N] ").strip().lower() == "y"
        except EOFError as error:
            raise CommandError("Nothing was deleted, because nobody could be asked. Add --yes.") from error
