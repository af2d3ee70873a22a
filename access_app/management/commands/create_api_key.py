"""The command `create_api_key`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from access_app.models import ApiKey
from access_app.role import Role


class Command(BaseCommand):
    help = "Creates an API key for a user and prints only the key. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="NAME")
        parser.add_argument(
            "--role", choices=Role.values, default="", help="the highest role of the key (same as its user)"
        )
        parser.add_argument("--name", default="", help="a name for the key, such as 'Nightly export'")

    def handle(self, *args: Any, user: str, role: str, name: str, **options: Any) -> None:
        users = get_user_model()
        try:
            key_user = users.objects.get(username=user)
        except users.DoesNotExist:
            raise CommandError(f"There is no user {user}.") from None
        if len(name) > 100:
            raise CommandError("The name of a key may have at most 100 characters.")
        _, token = ApiKey.objects.issue(key_user, name=name, role=role)
        self.stdout.write(token)
