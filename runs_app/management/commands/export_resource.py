"""The command that exports all data of a resource."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory_app.realms import is_realm
from runs_app.privacy.export import resource_lines


class Command(BaseCommand):
    help = "Writes all data of a resource as JSON lines: memory, threads, messages, and runs with their events."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("realm", help="u12 for a user, osupport for a team")
        parser.add_argument("resource", help="the ID of the resource")

    def handle(self, *args: object, realm: str, resource: str, **options: object) -> None:
        if not is_realm(realm):
            raise CommandError("A realm is u and the ID of a user, or o and the name of a team.")
        for line in resource_lines(realm, resource):
            self.stdout.write(line)
