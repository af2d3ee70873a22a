"""The commands that create users and API keys."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command

from access_app.models import ApiKey, Membership
from tests.factories import PASSWORD, UserFactory, member

pytestmark = pytest.mark.django_db


def test_create_user_takes_the_password_from_the_environment(monkeypatch):
    monkeypatch.setenv("AGENTCMS_PASSWORD", PASSWORD)

    call_command("create_user", "iris", "--superuser", stderr=StringIO())

    assert authenticate(username="iris", password=PASSWORD).is_superuser


def test_create_user_prompts_for_a_password_without_the_variable(monkeypatch):
    monkeypatch.delenv("AGENTCMS_PASSWORD", raising=False)
    typed = iter([PASSWORD, PASSWORD, PASSWORD, "another password"])
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(typed))  # the terminal

    call_command("create_user", "iris", stderr=StringIO())
    with pytest.raises(CommandError, match="The two passwords differ"):
        call_command("create_user", "ida")
    with pytest.raises(CommandError, match="already exists"):  # before it asks for a password
        call_command("create_user", "iris")

    assert authenticate(username="iris", password=PASSWORD)
    assert not get_user_model().objects.filter(username="ida").exists()


def test_create_user_names_the_variable_where_there_is_no_terminal(monkeypatch):
    monkeypatch.delenv("AGENTCMS_PASSWORD", raising=False)

    def end_of_input(prompt):
        raise EOFError

    monkeypatch.setattr("getpass.getpass", end_of_input)

    with pytest.raises(CommandError, match="Set AGENTCMS_PASSWORD"):
        call_command("create_user", "iris")


def test_create_user_creates_a_membership(monkeypatch):
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
        (["Taken"], PASSWORD, "already"),
    ],
)
def test_create_user_refuses_invalid_users_with_a_reason(monkeypatch, arguments, password, says):
    monkeypatch.setenv("AGENTCMS_PASSWORD", password)
    UserFactory(username="taken")

    with pytest.raises(CommandError, match=says):
        call_command("create_user", *arguments)

    assert Membership.objects.count() == 0


def test_create_api_key_prints_only_the_key():
    user = UserFactory(username="iris")
    printed = StringIO()

    call_command("create_api_key", "iris", "--role", "viewer", "--name", "reader", stdout=printed)

    key = ApiKey.objects.find(printed.getvalue().strip())
    assert (key.user, key.role, key.name) == (user, "viewer", "reader")
    assert printed.getvalue().count("\n") == 1


def test_create_api_key_refuses_an_unknown_user():
    with pytest.raises(CommandError, match="no user nobody"):
        call_command("create_api_key", "nobody")


def test_create_api_key_refuses_a_deactivated_user():
    UserFactory(username="iris", is_active=False)

    with pytest.raises(CommandError, match="iris is deactivated"):
        call_command("create_api_key", "iris")

    assert not ApiKey.objects.exists()


def test_a_key_may_serve_the_end_users_of_a_team_or_one_of_them():
    user = member("editor", "support")

    call_command("create_api_key", user.username, realm_owner="support", resource="alice", context='{"plan": "pro"}')

    key = ApiKey.objects.get(user=user)
    assert (key.realm_owner, key.resource, key.context) == ("support", "alice", {"plan": "pro"})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"realm_owner": "sales"}, "not an editor of sales"),
        ({"realm_owner": "support", "role": "viewer"}, "able to edit"),
        ({"context": "[]"}, "must be a JSON object"),
        ({"context": "{"}, "at line 1, column 2"),
        ({"context": '{"a": NaN}'}, "NaN is not JSON"),
        ({"context": '{"a": "\\u0000"}'}, "NUL"),
        ({"resource": "x" * 257}, "at most 256"),
    ],
)
def test_create_api_key_refuses_what_no_key_may_have_with_a_reason(options, says):
    user = member("editor", "support")

    with pytest.raises(CommandError, match=says):
        call_command("create_api_key", user.username, **options)

    assert not ApiKey.objects.exists()
