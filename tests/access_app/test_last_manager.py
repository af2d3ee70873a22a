"""The last manager of a team, who cannot be removed, demoted, moved, deactivated or deleted."""

from functools import partial

import pytest
from django.urls import reverse

from access_app import members, views
from access_app.forms.members import MemberForm
from access_app.models import Membership
from access_app.role import Role
from tests.concurrently import run_concurrently
from tests.factories import MembershipFactory, UserFactory, member
from tests.form_submission import form_data
from tests.page_client import browser

MESSAGE = "The team support needs at least one manager. Add another manager first."


@pytest.fixture
def manager(db):
    """Return the only manager of a team, beside one of another team."""
    member(Role.MANAGER, "sales")
    return member(Role.MANAGER, "support", username="mo")


@pytest.fixture
def root(db):
    return UserFactory(is_superuser=True, is_staff=True)


def managers():
    return list(Membership.objects.filter(owner_id="support", role="manager").values_list("user__username", flat=True))


def text(answer):
    return answer.content.decode()


# --- The page of the team


@pytest.mark.parametrize("name", ["member", "remove_member"])
@pytest.mark.parametrize("is_superuser", [False, True])
def test_the_page_keeps_the_last_manager(manager, root, name, is_superuser):
    client = browser(root if is_superuser else manager)
    url = reverse(f"account:{name}", args=[manager.memberships.get().pk])

    answer = client.post(url, {"role": "viewer"}, follow=True)

    assert MESSAGE in text(answer)
    assert managers() == ["mo"]


def test_the_last_manager_is_made_manager_again(manager):
    url = reverse("account:member", args=[manager.memberships.get().pk])

    answer = browser(manager).post(url, {"role": "manager"}, follow=True)

    assert MESSAGE not in text(answer)
    assert managers() == ["mo"]


def test_an_inactive_manager_does_not_count(manager):
    other = MembershipFactory(user=UserFactory(is_active=False), owner_id="support", role=Role.MANAGER)
    client = browser(manager)

    client.post(reverse("account:remove_member", args=[manager.memberships.get().pk]))
    client.post(reverse("account:remove_member", args=[other.pk]))

    assert managers() == ["mo"]


def test_the_last_manager_of_the_shared_team_stays(db):
    client = browser(member(Role.MANAGER, ""))
    url = reverse("account:remove_member", args=[Membership.objects.get().pk])

    for answer in (client.get(url), client.post(url, follow=True)):
        assert "The team Shared needs at least one manager." in text(answer)


def test_the_dialog_says_why_the_last_active_manager_cannot_be_removed(manager):
    MembershipFactory(user=UserFactory(is_active=False), owner_id="support", role=Role.MANAGER)
    MembershipFactory(owner_id="support", role=Role.PUBLISHER)

    dialog = browser(manager).get(reverse("account:remove_member", args=[manager.memberships.get().pk]))

    assert MESSAGE in text(dialog)


def test_one_of_two_managers_can_leave(manager):
    MembershipFactory(user=UserFactory(username="ann"), owner_id="support", role=Role.MANAGER)

    browser(manager).post(reverse("account:remove_member", args=[manager.memberships.get().pk]))

    assert managers() == ["ann"]


# --- The admin


@pytest.mark.parametrize(
    "sent", [{"owner_id": "support", "role": "editor"}, {"owner_id": "newsroom", "role": "manager"}]
)
def test_the_admin_keeps_the_last_manager(manager, root, sent):
    address = reverse("admin:access_app_membership_change", args=[manager.memberships.get().pk])

    answer = browser(root).post(address, sent)

    assert MESSAGE in text(answer)
    assert managers() == ["mo"]


def test_staff_cannot_delete_the_last_manager(manager, root):
    membership = manager.memberships.get()
    manager.is_staff = True
    manager.save()
    address = reverse("admin:access_app_membership_delete", args=[membership.pk])
    action = {"action": "delete_selected", "_selected_action": [membership.pk], "post": "yes"}

    for user in (manager, root):
        client = browser(user)
        answers = [
            client.get(address),
            client.post(address, {"post": "yes"}),
            client.post(reverse("admin:access_app_membership_changelist"), action),
        ]
        assert all(MESSAGE in text(answer) for answer in answers)
    assert managers() == ["mo"]


def test_all_managers_cannot_be_deleted_together(manager, root):
    MembershipFactory(owner_id="support", role=Role.MANAGER)
    ids = list(Membership.objects.values_list("pk", flat=True))
    action = {"action": "delete_selected", "_selected_action": ids, "post": "yes"}

    browser(root).post(reverse("admin:access_app_membership_changelist"), action)

    assert len(managers()) == 2


def account(user, **changed):
    """Return the form data of the page of a user with one membership."""
    row = user.memberships.get()
    fields = {"username": user.username, "is_active": "on", "date_joined_0": "2030-01-01", "date_joined_1": "00:00"}
    inline = {"TOTAL_FORMS": 1, "INITIAL_FORMS": 1, "0-id": row.pk, "0-user": user.pk, "0-owner_id": row.owner_id}
    inline["0-role"] = row.role
    sent = {**fields, **{f"memberships-{name}": value for name, value in inline.items()}, **changed}
    return {name: value for name, value in sent.items() if value is not None}


@pytest.mark.parametrize(
    "changed",
    [
        {"memberships-0-role": "viewer"},
        {"memberships-0-owner_id": "newsroom"},
        {"memberships-0-DELETE": "on"},
        {"is_active": None},
    ],
    ids=str,
)
def test_the_page_of_a_user_keeps_the_last_manager(manager, root, changed):
    address = reverse("admin:auth_user_change", args=[manager.pk])
    client = browser(root)

    refused = client.post(address, account(manager, **changed))

    assert MESSAGE in text(refused)
    assert managers() == ["mo"]
    manager.refresh_from_db()
    assert manager.is_active
    MembershipFactory(owner_id="support", role=Role.MANAGER)
    assert client.post(address, account(manager, **changed)).status_code == 302


def test_a_user_who_is_the_last_manager_cannot_be_deleted(manager, root):
    client = browser(root)
    action = {"action": "delete_selected", "_selected_action": [manager.pk], "post": "yes"}

    answers = [
        client.post(reverse("admin:auth_user_delete", args=[manager.pk]), {"post": "yes"}),
        client.post(reverse("admin:auth_user_changelist"), action),
    ]

    assert all(MESSAGE in text(answer) for answer in answers)
    assert managers() == ["mo"]


# --- Two at once


def remove_on_page(user, membership):
    browser(user).post(reverse("account:remove_member", args=[membership.pk]))


def demote_on_page(user, membership):
    browser(user).post(reverse("account:member", args=[membership.pk]), {"role": "viewer"})


def delete_in_admin(user, membership):
    browser(user).post(reverse("admin:access_app_membership_delete", args=[membership.pk]), {"post": "yes"})


def delete_in_admin_list(user, membership):
    action = {"action": "delete_selected", "_selected_action": [membership.pk], "post": "yes"}
    browser(user).post(reverse("admin:access_app_membership_changelist"), action)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("second", [remove_on_page, demote_on_page, delete_in_admin, delete_in_admin_list])
def test_two_managers_who_remove_each_other_leave_one(second):
    for _ in range(4):
        Membership.objects.all().delete()
        one, other = (
            MembershipFactory(user=UserFactory(is_staff=True), owner_id="support", role=Role.MANAGER) for _ in range(2)
        )

        run_concurrently([partial(remove_on_page, one.user, other), partial(second, other.user, one)])

        assert len(managers()) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("second", [remove_on_page, demote_on_page, delete_in_admin, delete_in_admin_list])
def test_of_two_managers_who_remove_each_other_only_one_succeeds(second):
    """A third manager stays, so that neither is the last one."""
    MembershipFactory(owner_id="support", role=Role.MANAGER)
    for _ in range(4):
        one, other = (
            MembershipFactory(user=UserFactory(is_staff=True), owner_id="support", role=Role.MANAGER) for _ in range(2)
        )

        run_concurrently([partial(remove_on_page, one.user, other), partial(second, other.user, one)])

        assert len(managers()) == 2
        Membership.objects.filter(pk__in=[one.pk, other.pk]).delete()


@pytest.mark.parametrize("name", ["member", "remove_member"])
def test_who_stops_being_a_manager_during_a_request_changes_nobody(manager, monkeypatch, name):
    other = MembershipFactory(owner_id="support", role=Role.MANAGER)

    answer = while_demoted(manager, monkeypatch, views, "managed_membership").post(
        reverse(f"account:{name}", args=[other.pk]), {"role": "viewer"}
    )

    assert answer.status_code == 403
    assert Membership.objects.get(pk=other.pk).role == Role.MANAGER


def test_who_stops_being_a_manager_during_a_request_adds_nobody(manager, monkeypatch):
    UserFactory(username="lee")

    client = while_demoted(manager, monkeypatch, MemberForm, "is_valid")
    answer = client.post(f"{reverse('account:team')}?owner=support", {"username": "lee", "role": "manager"})

    assert answer.status_code == 403
    assert not Membership.objects.filter(user__username="lee").exists()


@pytest.mark.parametrize("act", ["delete", "delete in the list", "change", "change of the user", "add"])
def test_who_stops_being_a_manager_while_the_admin_waits_changes_nobody(manager, monkeypatch, act):
    manager.is_staff = True
    manager.save()
    other = MembershipFactory(owner_id="support", role=Role.MANAGER)
    UserFactory(username="lee")
    action = {"action": "delete_selected", "_selected_action": [other.pk], "post": "yes"}
    path, sent = {
        "delete": (reverse("admin:access_app_membership_delete", args=[other.pk]), {"post": "yes"}),
        "delete in the list": (reverse("admin:access_app_membership_changelist"), action),
        "change": (
            reverse("admin:access_app_membership_change", args=[other.pk]),
            {"owner_id": "support", "role": "viewer"},
        ),
        "change of the user": (
            reverse("admin:auth_user_change", args=[other.user_id]),
            account(other.user, **{"memberships-0-DELETE": "on"}),
        ),
        "add": (
            reverse("admin:access_app_membership_add"),
            {"user": "lee", "owner_id": "support", "role": "manager"},
        ),
    }[act]
    monkeypatch.setattr(members, "lock_name", lambda name: manager.memberships.update(role=Role.VIEWER))

    answer = browser(manager).post(path, sent)

    assert answer.status_code == 403
    assert Membership.objects.get(pk=other.pk).role == Role.MANAGER
    assert Membership.objects.filter(owner_id="support").count() == 2


def test_the_last_manager_of_another_team_is_not_deleted_with_a_membership_that_has_moved(manager, root, monkeypatch):
    moved = MembershipFactory(owner_id="support", role=Role.MANAGER)
    move = Membership.objects.filter(pk=moved.pk).update
    monkeypatch.setattr(members, "lock_name", lambda name: move(owner_id="newsroom"))

    answer = browser(root).post(reverse("admin:access_app_membership_delete", args=[moved.pk]), {"post": "yes"})

    assert "somebody has changed this meanwhile" in text(answer)
    assert Membership.objects.filter(pk=moved.pk).exists()


def test_the_page_of_a_user_locks_teams_in_one_order_before_the_superusers(root, monkeypatch):
    user = MembershipFactory(owner_id="zoo", role=Role.VIEWER).user
    MembershipFactory(user=user, owner_id="art", role=Role.VIEWER)
    path, client, names = reverse("admin:auth_user_change", args=[user.pk]), browser(root), []
    form = form_data(text(client.get(path)))
    form["memberships-1-owner_id"] = "lab"
    monkeypatch.setattr(members, "lock_name", names.append)

    client.post(path, form)

    assert names[:3] == ["managers of art", "managers of lab", "managers of zoo"]
    assert names.index("superusers") > 2


def while_demoted(manager, monkeypatch, place, name):
    """Return a browser of a manager who loses the role when this function has returned."""
    function = getattr(place, name)

    def demote(*args):
        result = function(*args)
        manager.memberships.update(role=Role.VIEWER)
        return result

    monkeypatch.setattr(place, name, demote)
    return browser(manager)
