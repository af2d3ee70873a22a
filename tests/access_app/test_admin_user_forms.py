"""Forms of users in the admin: their words, and who gets which."""

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from access_app.models import ApiKey
from tests.factories import UserFactory, api_key, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db

User = get_user_model()
ADD = "/admin/auth/user/add/"


def change_address(user):
    return reverse("admin:auth_user_change", args=[user.pk])


@pytest.fixture
def root():
    return browser(UserFactory(is_staff=True, is_superuser=True))


def test_the_forms_name_no_sign_in_that_does_not_exist(root):
    password_page = reverse("admin:auth_user_password_change", args=[UserFactory().pk])

    pages = [root.get(address).content.decode() for address in (ADD, password_page)]

    assert ["LDAP" in page for page in pages] == [False, False]
    assert ["API keys of the user still work." in page for page in pages] == [True, True]
    assert "the current password for this user will be lost" in pages[1]


def test_a_user_without_a_password_has_working_keys(root):
    no_inline = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}
    root.post(ADD, {"username": "robot", "usable_password": "false", **no_inline})

    user = User.objects.get(username="robot")

    assert not user.has_usable_password()
    assert ApiKey.objects.find(api_key(user)).user == user


def test_two_memberships_of_one_team_are_an_error_in_words(root):
    user = member("viewer", "north")
    (row,) = user.memberships.all()
    inline = {"memberships-TOTAL_FORMS": "2", "memberships-INITIAL_FORMS": "1", "memberships-0-id": row.pk}
    for number, role in enumerate(("viewer", "editor")):
        inline |= {f"memberships-{number}-owner_id": "north", f"memberships-{number}-role": role}

    page = root.post(change_address(user), {"username": user.username, "is_active": "on", **inline}).content.decode()

    assert "A user has one role in a team. Remove one of the two memberships of the same team." in page
    assert "There is another membership of this team." in page
    assert "owner_id." not in page
    assert user.memberships.count() == 1


@pytest.mark.parametrize(("role", "is_offered"), [("publisher", False), ("manager", True)])
def test_only_managers_get_a_form_to_save(role, is_offered):
    answer = browser(member(role, "north", is_staff=True)).get(change_address(member("viewer", "north")))

    page = answer.content.decode()
    assert answer.status_code == 200
    assert ('name="_save"' in page, "Memberships" in page) == (is_offered, is_offered)


def test_memberships_are_offered_to_managers_only():
    address = reverse("admin:access_app_membership_changelist")
    clients = [browser(member(role, "north", is_staff=True)) for role in ("publisher", "manager")]

    assert [client.get(address).status_code for client in clients] == [403, 200]
    assert [address in client.get("/admin/").content.decode() for client in clients] == [False, True]


def test_a_name_in_another_case_is_taken_for_a_rename_too(root):
    UserFactory(username="ada")
    user = UserFactory(username="eve")
    no_inline = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}

    answers = [
        root.post(change_address(user), {"username": name, "is_active": "on", **no_inline}) for name in ("ADA", "Eve")
    ]

    assert "A user with that username already exists." in answers[0].content.decode()
    assert answers[1].status_code == 302
    user.refresh_from_db()
    assert user.username == "Eve"
