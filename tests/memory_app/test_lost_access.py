"""Callers whose account, key or role is taken from them while they read a stream."""

from datetime import timedelta

import pytest
from django.utils import timezone

from access_app.models import ApiKey, Membership
from access_app.role import Role
from memory_app.realms import memory_caller, refresh_credentials, still_has_access
from tests.factories import UserFactory, member

pytestmark = pytest.mark.django_db


def keyed(user, **fields):
    """Return a user as a request with a new API key has it."""
    user.api_key, _ = ApiKey.objects.issue(user, **fields)
    return user


@pytest.fixture
def served():
    """Return the caller of a key for the end users of a team."""
    return memory_caller(keyed(member(Role.EDITOR, "support"), realm_owner="support"))


def test_access_stays_while_nothing_changes(served):
    keyed(UserFactory(), expires_at=timezone.now() - timedelta(days=1))  # of somebody else

    assert still_has_access(served)
    assert still_has_access(memory_caller(UserFactory()))
    assert still_has_access(memory_caller(keyed(UserFactory())))


def test_an_account_that_is_switched_off_or_deleted_has_no_access():
    off, deleted = UserFactory(), UserFactory()
    type(off).objects.filter(pk=off.pk).update(is_active=False)
    type(deleted).objects.filter(pk=deleted.pk).delete()

    assert not still_has_access(memory_caller(off))
    assert not still_has_access(memory_caller(deleted))


@pytest.mark.parametrize("column", ["revoked_at", "expires_at"])
def test_a_key_that_is_revoked_or_expired_has_no_access(served, column):
    ApiKey.objects.update(**{column: timezone.now() - timedelta(seconds=1)})

    assert not still_has_access(served)


@pytest.mark.parametrize("role", [Role.VIEWER, None])
def test_a_key_for_end_users_needs_an_editor_of_their_team(served, role):
    Membership.objects.update(role=role) if role else Membership.objects.all().delete()
    Membership.objects.create(user=served.user, owner_id="other", role=Role.MANAGER)

    assert not still_has_access(served)


def test_the_rights_of_a_superuser_and_the_role_of_a_key_are_read_again():
    user = keyed(UserFactory(is_superuser=True), role=Role.PUBLISHER)
    type(user).objects.filter(pk=user.pk).update(is_superuser=False)
    ApiKey.objects.filter(pk=user.api_key.pk).update(role=Role.VIEWER)

    assert refresh_credentials(user)

    assert (user.is_superuser, user.api_key.role) == (False, Role.VIEWER)
