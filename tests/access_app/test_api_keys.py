"""API keys: creation, lookup, expiry and last use."""

from datetime import timedelta

import pytest
from django.utils import timezone

from access_app.models import LAST_USED_RESOLUTION, ApiKey
from access_app.role import Role
from tests.factories import UserFactory, api_key

pytestmark = pytest.mark.django_db


@pytest.fixture
def user():
    return UserFactory()


def test_a_key_is_found_by_its_secret(user):
    key, token = ApiKey.objects.issue(user, name="deploy")

    stored_key = ApiKey.objects.find(token)

    assert (stored_key, stored_key.user, stored_key.name) == (key, user, "deploy")


def test_finding_a_key_takes_one_query(user, django_assert_num_queries):
    token = api_key(user)

    with django_assert_num_queries(1):
        assert ApiKey.objects.find(token).user.is_active


def test_the_secret_is_not_stored(user):
    key, token = ApiKey.objects.issue(user)

    stored = ApiKey.objects.filter(pk=key.pk).values().get()

    assert not any(token in str(value) or token[len(key.prefix) + 1 :] in str(value) for value in stored.values())


def test_keys_are_unique(user):
    tokens = [api_key(user) for _ in range(20)]

    assert len({token[20:] for token in tokens}) == 20


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-1],
        lambda token: token + "x",
        lambda token: token[:-1] + ("x" if token[-1] != "x" else "y"),
        lambda token: token[:13],
        lambda token: token.upper(),
        lambda token: f" {token}",
        lambda token: "",
        lambda token: "acms_00000000_" + token[14:],
        lambda token: token + "\0",
        lambda token: "\udcff" + token,
        lambda token: token[:5] + "é" + token[6:],
        lambda token: "%" * 13,
        lambda token: "x" * 100_000,
    ],
)
def test_a_wrong_secret_finds_no_key(user, spoil):
    token = api_key(user)

    assert ApiKey.objects.find(spoil(token)) is None


def test_the_prefix_of_one_key_with_the_secret_of_another_finds_no_key(user):
    first, second = api_key(user), api_key(user)

    assert ApiKey.objects.find(first[:13] + second[13:]) is None


def test_an_expired_key_is_not_found(user):
    token = api_key(user, expires_at=timezone.now())

    assert ApiKey.objects.find(token) is None


def test_a_key_that_expires_later_is_valid(user):
    assert ApiKey.objects.find(api_key(user, expires_at=timezone.now() + timedelta(minutes=1)))


def test_a_revoked_key_is_not_found_and_stores_the_time(user):
    key, token = ApiKey.objects.issue(user)
    key.revoke()
    revoked_at = key.revoked_at

    key.revoke()

    assert ApiKey.objects.find(token) is None
    assert key.revoked_at == revoked_at


def test_the_key_of_an_inactive_user_is_not_found(user):
    token = api_key(user)

    user.is_active = False
    user.save()

    assert ApiKey.objects.find(token) is None


def test_deleting_a_user_deletes_the_keys(user):
    token = api_key(user)

    user.delete()

    assert ApiKey.objects.find(token) is None


def test_a_key_with_an_unknown_role_is_not_found(user):
    key, token = ApiKey.objects.issue(user, role=Role.VIEWER)
    ApiKey.objects.filter(pk=key.pk).update(role="owner")

    assert ApiKey.objects.find(token) is None


def test_the_last_use_of_a_key_is_updated_at_most_once_a_minute(user, django_assert_num_queries):
    token = api_key(user)
    ApiKey.objects.find(token).touch()
    key = ApiKey.objects.find(token)

    with django_assert_num_queries(0):
        key.touch()

    assert key.last_used_at is not None


def test_the_last_use_of_a_key_is_updated_again_after_a_minute(user):
    key, token = ApiKey.objects.issue(user)
    long_ago = timezone.now() - 2 * LAST_USED_RESOLUTION
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=long_ago)

    ApiKey.objects.find(token).touch()

    assert ApiKey.objects.get(pk=key.pk).last_used_at > long_ago
