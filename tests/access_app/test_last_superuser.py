"""The last superuser, and the records of what a user did in the admin."""

import threading

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.db import connection
from django.urls import reverse

from access_app.members import LAST_SUPERUSER_MESSAGE
from tests.factories import UserFactory, member
from tests.page_client import browser

User = get_user_model()
NO_INLINE = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}
RIGHTS = {"is_active": "on", "is_staff": "on", "is_superuser": "on"}


def save(client, user, **inputs):
    address = reverse("admin:auth_user_change", args=[user.pk])
    return client.post(address, {"username": user.username, **NO_INLINE, **inputs})


def without(name):
    return {column: value for column, value in RIGHTS.items() if column != name}


@pytest.fixture
def root():
    return UserFactory(is_staff=True, is_superuser=True)


@pytest.mark.django_db
@pytest.mark.parametrize("name", RIGHTS)
def test_the_last_superuser_cannot_give_up_a_right(root, name):
    UserFactory(is_superuser=True, is_staff=True, is_active=False)  # cannot sign in
    UserFactory(is_superuser=True)  # cannot open the admin

    refused = save(browser(root), root, **without(name))

    assert LAST_SUPERUSER_MESSAGE in refused.content.decode()
    root.refresh_from_db()
    assert (root.is_active, root.is_staff, root.is_superuser) == (True, True, True)


@pytest.mark.django_db
@pytest.mark.parametrize("name", RIGHTS)
def test_one_of_two_superusers_can_give_up_a_right(root, name):
    UserFactory(is_superuser=True, is_staff=True)

    assert save(browser(root), root, **without(name)).status_code == 302


@pytest.mark.django_db
def test_the_last_superuser_keeps_a_password(root):
    client, address = browser(root), reverse("admin:auth_user_password_change", args=[root.pk])

    refused = client.post(address, {"usable_password": "false", "unset-password": "Disable"})
    other = UserFactory(is_superuser=True, is_staff=True)
    allowed = client.post(
        reverse("admin:auth_user_password_change", args=[other.pk]),
        {"usable_password": "false", "unset-password": "Disable"},
    )

    assert LAST_SUPERUSER_MESSAGE in refused.content.decode()
    assert allowed.status_code == 302
    assert [User.objects.get(pk=user.pk).has_usable_password() for user in (root, other)] == [True, False]
    assert LAST_SUPERUSER_MESSAGE in save(client, root, **without("is_superuser")).content.decode()


@pytest.mark.django_db
def test_the_last_superuser_is_not_deleted(root):
    client = browser(root)
    action = {"action": "delete_selected", "_selected_action": [root.pk], "post": "yes"}

    pages = [
        client.post(reverse("admin:auth_user_delete", args=[root.pk]), {"post": "yes"}),
        client.post(reverse("admin:auth_user_changelist"), action),
    ]

    assert [LAST_SUPERUSER_MESSAGE in page.content.decode() for page in pages] == [True, True]
    assert User.objects.filter(pk=root.pk).exists()


@pytest.mark.django_db
def test_a_manager_grants_a_role_to_the_last_superuser(root):
    manager = member("manager", "north", is_staff=True)
    inline = {"memberships-TOTAL_FORMS": "1", "memberships-0-owner_id": "north", "memberships-0-role": "viewer"}

    answer = save(browser(manager), root, **inline)

    assert answer.status_code == 302
    assert root.memberships.exists()


@pytest.mark.django_db
def test_a_user_is_not_deleted_with_the_log_of_what_the_user_did(root):
    user = UserFactory(is_staff=True)
    LogEntry.objects.log_actions(user.pk, [root], CHANGE, "Opened the texts.", single_object=True)

    page = browser(root).post(reverse("admin:auth_user_delete", args=[user.pk]), {"post": "yes"}).content.decode()

    assert "The admin deletes no user who has data of these kinds: log entry. Deactivate the user instead." in page
    assert LogEntry.objects.filter(user=user).exists()


@pytest.mark.django_db(transaction=True)
def test_two_superusers_do_not_demote_each_other_at_once(root):
    other = UserFactory(is_superuser=True, is_staff=True)
    barrier, statuses = threading.Barrier(2), []

    def demote(actor, target):
        client = browser(actor)
        barrier.wait()
        statuses.append(save(client, target, **without("is_superuser")).status_code)
        connection.close()

    threads = [threading.Thread(target=demote, args=pair) for pair in ((root, other), (other, root))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert User.objects.filter(is_superuser=True).count() == 1
    assert statuses.count(302) == 1
