"""Users and keys from a script."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command

from access_app.models import ApiKey, Membership
from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db


def test_a_user_is_created_with_the_password_of_the_environment(monkeypatch):
    monkeypatch.setenv("AGENTCMS_PASSWORD", PASSWORD)

    call_command("create_user", "iris", "--superuser", stderr=StringIO())

    assert authenticate(username="iris", password=PASSWORD).is_superuser


def test_the_password_is_asked_for_where_the_environment_has_none(monkeypatch):
    monkeypatch.delenv("AGENTCMS_PASSWORD", raising=False)
    typed = iter([PASSWORD, PASSWORD, PASSWORD, "another password"])
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(typed))  # the keyboard

    call_command("create_user", "iris", stderr=StringIO())
    with pytest.raises(CommandError, match="The two passwords differ"):
        call_command("create_user", "ida")

    assert authenticate(username="iris", password=PASSWORD)
    assert not get_user_model().objects.filter(username="ida").exists()


def test_a_user_is_created_as_a_member(monkeypatch):
    monkeypatch.setenv("AGENTCMS_PASSWORD", PASSWORD)

    call_command("create_user", "iris", "--owner", "", "--role", "editor", stderr=StringIO())

    assert list(Membership.objects.values_list("user__username", "owner_id", "role")) == [("iris", "", "editor")]


@pytest.mark.parametrize(
    ("arguments", "password", "says"),
    [
        (["iris"], "short", "too short"),
        (["iris", "--role", "editor"], PASSWORD, "--owner"),
        (["iris", "--owner", "a/b"], PASSWORD, "printable"),
        (["no spaces"], PASSWORD, "valid username"),
        (["taken"], PASSWORD, "already"),
    ],
)
def test_what_cannot_be_a_user_is_refused_with_the_reason(monkeypatch, arguments, password, says):
    monkeypatch.setenv("AGENTCMS_PASSWORD", password)
    UserFactory(username="taken")

    with pytest.raises(CommandError, match=says):
        call_command("create_user", *arguments)

    assert Membership.objects.count() == 0


def test_a_key_is_printed_and_nothing_else():
    user = UserFactory(username="iris")
    printed = StringIO()

    call_command("create_api_key", "iris", "--role", "viewer", "--name", "reader", stdout=printed)

    key = ApiKey.objects.find(printed.getvalue().strip())
    assert (key.user, key.role, key.name) == (user, "viewer", "reader")
    assert printed.getvalue().count("\n") == 1


def test_a_key_for_nobody_is_refused():
    with pytest.raises(CommandError, match="no user nobody"):
        call_command("create_api_key", "nobody")
