"""The command `create_user`."""

from __future__ import annotations

import getpass
import os
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError, transaction

from access_app.models import Membership
from access_app.role import Role

PASSWORD_VARIABLE = "AGENTCMS_PASSWORD"  # noqa: S105  the name of a variable


class Command(BaseCommand):
    help = f"Creates a user. The password is read from {PASSWORD_VARIABLE}, else from the terminal."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--superuser", action="store_true", help="has all permissions, also in the admin")
        parser.add_argument("--staff", action="store_true", help="may open the admin")
        parser.add_argument("--owner", help="the owner (team) that the user joins; '' is Shared")
        parser.add_argument("--role", choices=Role.values, help="the role for that owner (viewer)")

    def handle(self, *args: object, name: str, superuser: bool, staff: bool, **options: Any) -> None:
        owner, role = options["owner"], options["role"]
        if role and owner is None:
            raise CommandError("--role needs --owner. Use --owner '' for Shared.")
        user = get_user_model()(username=name, is_superuser=superuser, is_staff=staff or superuser)
        membership = Membership(user=user, owner_id=owner or "", role=role or Role.VIEWER)
        try:
            # The column has the hash of the password, which is not made before the password is accepted.
            user.full_clean(exclude=["password"])
            reject_similar_username(user)
            # The user has no primary key yet, without which the field would be invalid.
            membership.clean_fields(exclude=["user"])
            password = os.environ.get(PASSWORD_VARIABLE) or self._prompt_for_password()
            validate_password(password, user)
            user.set_password(password)
            with transaction.atomic():
                user.save()
                if owner is not None:
                    membership.save()
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        except IntegrityError:
            raise CommandError(f"The user {name} already exists.") from None
        self.stderr.write(f"Created {name}.")

    def _prompt_for_password(self) -> str:
        try:
            password, again = (getpass.getpass(prompt) for prompt in ("Password: ", "Password (again): "))
        except EOFError:
            raise CommandError(f"There is no terminal to read a password from. Set {PASSWORD_VARIABLE}.") from None
        if password != again:
            raise CommandError("The two passwords differ.")
        return password


def reject_similar_username(user: AbstractBaseUser) -> None:
    """Raise ValidationError if another user has the name in upper or lower case, as the forms of users do."""
    if get_user_model().objects.filter(username__iexact=user.get_username()).exists():
        raise ValidationError("A user with that username already exists.", code="unique")
