"""Change forms of the admin, while others change the same row."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connections, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from access_app import members
from access_app.admin import users
from access_app.admin.api_keys import ApiKeyForm
from access_app.admin.users import AccountForm, User
from access_app.admin_base.concurrent_changes import LockedRowMixin
from access_app.models import ApiKey
from tests.factories import MembershipFactory, UserFactory
from tests.page_client import browser

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_key_that_is_revoked_while_its_form_is_saved_stays_revoked(monkeypatch):
    staff = UserFactory(is_staff=True, is_superuser=True)
    key, _ = ApiKey.objects.issue(staff, name="Old name")
    client, was_read, clean = Client(), Event(), ApiKeyForm.clean
    client.force_login(staff)

    def clean_noticed(form):
        was_read.set()
        return clean(form)

    def save_form():
        fields = {"user": staff.pk, "name": "New name", "role": "", "resource": "", "context": "null"}
        try:
            return client.post(reverse("admin:access_app_apikey_change", args=[key.pk]), fields)
        finally:
            connections.close_all()

    monkeypatch.setattr(ApiKeyForm, "clean", clean_noticed)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
            answer = pool.submit(save_form)
            was_read.wait(2)  # never if the form waits for this transaction
        assert answer.result(30).status_code == 302

    key.refresh_from_db()
    assert (key.name, key.revoked_at is None) == ("New name", False)


def test_a_user_is_changed_and_deleted_at_the_same_time(monkeypatch):
    """Both lock the row of the user, and that no superuser is lost. In two orders, each would wait for the other."""
    staff, user = UserFactory(is_staff=True, is_superuser=True), UserFactory()
    row_is_locked, name_is_locked = Event(), Event()
    clean_username, reject = AccountForm.clean_username, users.reject_loss_of_superusers

    def clean_paused(form):
        row_is_locked.set()
        name_is_locked.wait(1)  # never if the deletion waits for the row first
        return clean_username(form)

    def reject_noticed(rows):
        reject(rows)
        name_is_locked.set()

    def post(page, fields):
        client = Client()
        client.force_login(staff)
        try:
            return client.post(reverse(f"admin:auth_user_{page}", args=[user.pk]), fields).status_code
        finally:
            connections.close_all()

    def delete():
        row_is_locked.wait(10)
        return post("delete", {"post": "yes"})

    monkeypatch.setattr(AccountForm, "clean_username", clean_paused)
    monkeypatch.setattr(users, "reject_loss_of_superusers", reject_noticed)
    inline = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}
    with ThreadPoolExecutor(2) as pool:
        changed = pool.submit(post, "change", {"username": user.username, **inline})
        deleted = pool.submit(delete)

        assert (changed.result(30), deleted.result(30)) == (302, 302)
    assert not User.objects.filter(pk=user.pk).exists()


def test_a_role_is_changed_on_both_pages_at_the_same_time(monkeypatch):
    """Both lock the team and the row of the membership. In two orders, each would wait for the other."""
    root = UserFactory(is_staff=True, is_superuser=True)
    membership = MembershipFactory(owner_id="support", role="viewer")
    team_is_locked, row_is_locked = Event(), Event()
    lock_row, stored_membership = LockedRowMixin.lock_row, members.stored_membership

    def lock_noticed(page, *args):
        lock_row(page, *args)
        row_is_locked.set()

    def store_paused(row):
        team_is_locked.set()
        row_is_locked.wait(1)  # never if the form of the admin waits for the team first
        return stored_membership(row)

    def post(path, fields):
        try:
            return browser(root).post(path, fields).status_code
        finally:
            connections.close_all()

    def change_in_admin():
        team_is_locked.wait(10)
        path = reverse("admin:access_app_membership_change", args=[membership.pk])
        return post(path, {"owner_id": "support", "role": "publisher"})

    monkeypatch.setattr(LockedRowMixin, "lock_row", lock_noticed)
    monkeypatch.setattr(members, "stored_membership", store_paused)
    with ThreadPoolExecutor(2) as pool:
        admin_answer = pool.submit(change_in_admin)
        page_answer = pool.submit(post, reverse("account:member", args=[membership.pk]), {"role": "editor"})

        assert (page_answer.result(30), admin_answer.result(30)) == (302, 302)
    membership.refresh_from_db()
    assert membership.role == "publisher"


@pytest.mark.parametrize("page", ["delete", "change", "password_change"])
def test_the_pages_of_a_user_are_shown(client, page):
    """They are shown without a transaction, in which only what they send is."""
    staff, user = UserFactory(is_staff=True, is_superuser=True), UserFactory()
    client.force_login(staff)

    for row in (staff, user):
        assert client.get(reverse(f"admin:auth_user_{page}", args=[row.pk])).status_code == 200


def test_users_are_deleted_from_the_list(client):
    staff, user = UserFactory(is_staff=True, is_superuser=True), UserFactory()
    client.force_login(staff)
    action = {"action": "delete_selected", "_selected_action": [user.pk]}

    confirmation = client.post(reverse("admin:auth_user_changelist"), action)
    deleted = client.post(reverse("admin:auth_user_changelist"), {**action, "post": "yes"})

    assert (confirmation.status_code, deleted.status_code) == (200, 302)
    assert not User.objects.filter(pk=user.pk).exists()
