"""The command `create_api_key`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from access_app.end_user_keys import find_role_faults
from access_app.models import ApiKey, validate_key_context, validate_key_resource
from access_app.role import Role
from agentcms.db.column_values import ColumnValues
from agentcms.wire.json_parser import InvalidJSON, parse_typed_json


class Command(BaseCommand):
    help = "Creates an API key for a user and prints only the key. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="NAME")
        parser.add_argument(
            "--role", choices=Role.values, default="", help="the highest role of the key (same as its user)"
        )
        parser.add_argument("--name", default="", help="a name for the key, such as 'Nightly export'")

        parser.add_argument(
            "--realm-owner", metavar="OWNER", help="the team whose end users the key serves; blank is Shared"
        )
        parser.add_argument("--resource", default="", metavar="ID", help="the only resource that the key reaches")
        parser.add_argument("--context", default="", metavar="JSON", help="facts about the caller, as an object")

    def handle(self, *args: object, user: str, role: str, name: str, **options: Any) -> None:
        users = get_user_model()
        try:
            key_user = users.objects.get(username=user)
        except users.DoesNotExist:
            raise CommandError(f"There is no user {user}.") from None
        if not key_user.is_active:
            raise CommandError(f"{user} is deactivated, so the key would not work. Name another user.")
        if len(name) > 100:
            raise CommandError("The name of a key may have at most 100 characters.")
        _, token = ApiKey.objects.issue(
            key_user, name=name, role=role, **memory_columns(key_user, options | {"role": role})
        )
        self.stdout.write(token)


def memory_columns(user: User, options: dict[str, Any]) -> ColumnValues:
    """Return whose conversations the key reaches. Raise CommandError for invalid options."""
    owner, resource = options["realm_owner"], options["resource"]
    if owner is not None:
        for _, message in find_role_faults(user, options["role"], owner):
            raise CommandError(message)
    try:
        context = parse_typed_json(options["context"] or "null")
    except InvalidJSON as error:
        raise CommandError(f"The context is not valid: {error}") from None
    try:
        validate_key_resource(resource)
        validate_key_context(context)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from None
    return {"realm_owner": owner, "resource": resource, "context": context}
