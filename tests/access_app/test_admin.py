"""Members and keys in Django admin."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from access_app.models import ApiKey, Membership
from tests.factories import UserFactory, api_key, member
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

ADD_MEMBER = "admin:access_app_membership_add"


def test_a_manager_grants_roles_for_the_own_owner_only(client):
    client.force_login(member("manager", "north", is_staff=True))
    user = UserFactory()

    granted = client.post(reverse(ADD_MEMBER), {"user": user.username, "owner_id": "north", "role": "editor"})
    refused = client.post(reverse(ADD_MEMBER), {"user": user.username, "owner_id": "south", "role": "editor"})

    assert granted.status_code == 302
    assert "teams that you manage" in refused.content.decode()
    assert list(user.memberships.values_list("owner_id", flat=True)) == ["north"]


def test_the_username_of_a_membership_has_no_links_that_write_an_id(client):
    client.force_login(UserFactory(is_superuser=True, is_staff=True))

    page = client.get(reverse(ADD_MEMBER)).content.decode()

    assert 'id="id_user"' in page
    assert "related-widget-wrapper-link" not in page


def test_a_membership_does_not_move_to_a_team_that_the_user_is_in(client):
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    user = UserFactory()
    user.memberships.create(owner_id="north", role="viewer")
    other = user.memberships.create(owner_id="south", role="viewer")
    address = reverse("admin:access_app_membership_change", args=[other.pk])

    refused = client.post(address, {"owner_id": "north", "role": "editor"})

    assert refused.status_code == 200
    assert "The user is already a member of this team. Change the role there." in refused.content.decode()
    assert sorted(user.memberships.values_list("owner_id", "role")) == [("north", "viewer"), ("south", "viewer")]


def test_a_membership_that_another_request_adds_meanwhile_is_an_error_of_the_form(client, monkeypatch):
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    user, checks = UserFactory(), []
    user.memberships.create(owner_id="north", role="viewer")
    check = Membership.validate_constraints

    def check_the_second_time(membership, **options):  # the first time, the other row was not there yet
        checks.append(membership)
        if len(checks) > 1:
            check(membership, **options)

    monkeypatch.setattr(Membership, "validate_constraints", check_the_second_time)

    answer = client.post(reverse(ADD_MEMBER), {"user": user.username, "owner_id": "north", "role": "editor"})

    assert answer.status_code == 200
    assert "already" in answer.content.decode()
    assert len(checks) == 2
    assert [*user.memberships.values_list("owner_id", "role")] == [("north", "viewer")]


def test_a_manager_cannot_see_or_move_memberships_of_other_owners(client):
    client.force_login(member("manager", "north", is_staff=True))
    other = Membership.objects.create(user=UserFactory(), owner_id="south", role="viewer")
    address = reverse("admin:access_app_membership_change", args=[other.pk])

    client.post(address, {"user": other.user.username, "owner_id": "north", "role": "manager"})

    other.refresh_from_db()
    assert (other.owner_id, other.role) == ("south", "viewer")


def test_a_user_with_keys_and_conversations_is_not_deleted_but_deactivated(client):
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    user = UserFactory()
    api_key(user)
    add_thread(user)

    refused = client.post(reverse("admin:auth_user_delete", args=[user.pk]), {"post": "yes"})

    text = "has data of these kinds: API key, resource, thread. Deactivate the user instead."
    assert refused.status_code == 200
    assert text in refused.content.decode()
    assert type(user).objects.filter(pk=user.pk).exists()


def test_staff_cannot_make_themselves_superusers(client):
    user = member("manager", "north", is_staff=True)
    client.force_login(user)
    inline = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}

    client.post(reverse("admin:auth_user_change", args=[user.pk]), {"is_superuser": "on", "username": "x", **inline})

    user.refresh_from_db()
    assert not user.is_superuser
    assert user.username != "x"


@pytest.mark.parametrize("method", ["get", "post"])
def test_staff_cannot_set_passwords(client, method):
    client.force_login(member("manager", "north", is_staff=True))
    root = UserFactory(is_superuser=True)
    before = root.password
    typed = {"password1": "taken-over-77", "password2": "taken-over-77", "usable_password": "true"}

    answer = getattr(client, method)(reverse("admin:auth_user_password_change", args=[root.pk]), typed)

    root.refresh_from_db()
    assert answer.status_code == 403
    assert root.password == before


def test_a_superuser_sets_a_password(client):
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    user = UserFactory()
    typed = {"password1": "given-anew-77", "password2": "given-anew-77", "usable_password": "true"}

    client.post(reverse("admin:auth_user_password_change", args=[user.pk]), typed)

    user.refresh_from_db()
    assert user.check_password("given-anew-77")


def test_the_membership_inline_grants_roles_for_the_own_owner_only(client):
    client.force_login(member("manager", "north", is_staff=True))
    user = UserFactory()
    row = {"memberships-0-owner_id": "south", "memberships-0-role": "manager", "memberships-0-user": user.pk}
    inline = {"memberships-TOTAL_FORMS": "1", "memberships-INITIAL_FORMS": "0", **row}

    answer = client.post(reverse("admin:auth_user_change", args=[user.pk]), inline)

    assert "teams that you manage" in answer.content.decode()
    assert user.memberships.count() == 0


def inline(user, owner_id, role, row=""):
    """Return the form data of the membership inline, with `row` for an existing one."""
    row = {"memberships-0-owner_id": owner_id, "memberships-0-role": role, "memberships-0-id": row}
    count = "1" if row["memberships-0-id"] else "0"
    return {"memberships-TOTAL_FORMS": "1", "memberships-INITIAL_FORMS": count, "memberships-0-user": user.pk, **row}


def test_the_membership_inline_grants_and_changes_roles_of_the_own_owner(client):
    client.force_login(member("manager", "north", is_staff=True))
    user = UserFactory()
    address = reverse("admin:auth_user_change", args=[user.pk])

    client.post(address, inline(user, "north", "editor"))
    client.post(address, inline(user, "north", "viewer", row=user.memberships.get().pk))

    assert list(user.memberships.values_list("owner_id", "role")) == [("north", "viewer")]


def test_the_membership_inline_moves_no_role_between_owners(client):
    client.force_login(member("manager", "north", is_staff=True))
    user = UserFactory()
    mine, other = [
        Membership.objects.create(user=user, owner_id=owner_id, role="viewer") for owner_id in ("north", "south")
    ]
    address = reverse("admin:auth_user_change", args=[user.pk])

    client.post(address, inline(user, "south2", "manager", row=mine.pk))
    client.post(address, inline(user, "north", "manager", row=other.pk))
    client.post(address, {**inline(user, "south", "viewer", row=other.pk), "memberships-0-DELETE": "on"})

    assert sorted(user.memberships.values_list("owner_id", "role")) == [("north", "viewer"), ("south", "viewer")]


def test_the_secret_of_a_key_is_displayed_once(client):
    staff = UserFactory(is_staff=True, is_superuser=True)
    client.force_login(staff)
    form = {"user": staff.pk, "name": "ci", "role": "viewer"}

    html = client.post(reverse("admin:access_app_apikey_add"), form, follow=True).content.decode()
    token = re.search(r"acms_\w{8}_[\w-]+", html)[0]
    key = ApiKey.objects.find(token)
    later = client.get(reverse("admin:access_app_apikey_change", args=[key.pk])).content.decode()

    assert (key.name, key.role) == ("ci", "viewer")
    assert token not in later
    assert key.secret_hash not in later


def test_staff_see_and_create_only_their_own_keys(client):
    staff, other = member("viewer", is_staff=True), UserFactory()
    api_key(other, name="theirs")
    client.force_login(staff)

    listed = client.get(reverse("admin:access_app_apikey_changelist")).content.decode()
    client.post(reverse("admin:access_app_apikey_add"), {"user": other.pk, "name": "stolen", "role": ""})

    assert "theirs" not in listed
    assert not other.api_keys.filter(name="stolen").exists()


def test_a_deactivated_user_gets_no_key(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    former = UserFactory(is_active=False)

    answer = client.post(reverse("admin:access_app_apikey_add"), {"user": former.pk, "name": "ci", "role": ""})

    assert "is deactivated, so the key would not work" in answer.content.decode()
    assert not former.api_keys.exists()


def test_a_key_is_revoked_from_the_list(client):
    staff = UserFactory(is_staff=True, is_superuser=True)
    token = api_key(staff)
    client.force_login(staff)
    key = ApiKey.objects.get()

    action = {"action": "revoke", "_selected_action": [key.pk]}
    question = client.post(reverse("admin:access_app_apikey_changelist"), action).content.decode()
    assert ApiKey.objects.find(token)
    client.post(reverse("admin:access_app_apikey_changelist"), {**action, "confirmed": "Revoke 1 key"})

    assert ApiKey.objects.find(token) is None
    (entry,) = LogEntry.objects.all()
    assert (entry.user, entry.object_id, entry.change_message) == (staff, str(key.pk), "Revoked.")
    assert "<title>Revoke 1 key? · Agent CMS</title>" in question
    assert 'name="confirmed" value="Revoke 1 key"' in question
    assert "never used" in question
    assert "get a 401 immediately" in question


def test_the_number_of_revoked_keys_is_reported(client):
    staff = UserFactory(is_staff=True, is_superuser=True)
    api_key(staff)
    client.force_login(staff)
    action = {"action": "revoke", "_selected_action": [ApiKey.objects.get().pk], "confirmed": "Revoke 1 key"}

    page = client.post(reverse("admin:access_app_apikey_changelist"), action, follow=True).content.decode()

    assert "1 key revoked." in page
    assert "same as user" in page


def test_revoked_keys_are_not_revoked_again(client):
    staff = UserFactory(is_staff=True, is_superuser=True)
    api_key(staff)
    key = ApiKey.objects.get()
    key.revoke()
    client.force_login(staff)

    action = {"action": "revoke", "_selected_action": [key.pk]}
    page = client.post(reverse("admin:access_app_apikey_changelist"), action, follow=True).content.decode()

    assert "The selected keys are revoked already." in page


@pytest.mark.parametrize(("realm_owner", "serves"), [(None, "the user"), ("", "Shared"), ("north", "north")])
def test_the_page_of_a_key_tells_shared_from_nobody(client, realm_owner, serves):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    api_key(UserFactory(), realm_owner=realm_owner)

    page = client.get(reverse("admin:access_app_apikey_change", args=[ApiKey.objects.get().pk])).content.decode()

    rows = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert f"Serves: {serves} " in rows
    assert "Max role: same as user " in rows


def test_groups_and_permissions_are_not_shown(client):
    root = UserFactory(is_staff=True, is_superuser=True)
    client.force_login(root)

    index = client.get(reverse("admin:index")).content.decode()
    account = client.get(reverse("admin:auth_user_change", args=[root.pk])).content.decode()
    listed = client.get(reverse("admin:auth_user_changelist")).content.decode()

    assert "Groups" not in index + listed
    assert 'name="groups"' not in account
    assert 'name="user_permissions"' not in account
    assert 'name="is_superuser"' in account


def test_teams_are_chosen_from_a_list(client):
    manager = member("manager", "north", is_staff=True)
    Membership.objects.create(user=UserFactory(), owner_id="south", role="viewer")

    def choices(user, address):
        client.force_login(user)
        page = client.get(reverse(address)).content.decode()
        return re.findall(r"<option[^>]*>([^<]*)<", page.partition('name="owner_id"')[2].partition("</select>")[0])

    root = UserFactory(is_staff=True, is_superuser=True)
    for address in ("admin:access_app_membership_add", "admin:versions_app_retentionrule_add"):
        assert choices(manager, address) == ["north"]
        assert choices(root, address) == ["Shared", "north", "south"]


def test_the_brand_has_a_name_without_its_text(client):
    client.force_login(UserFactory(is_staff=True))

    page = client.get(reverse("admin:index")).content.decode()

    assert 'aria-label="Agent CMS, administration"' in page


def test_deleting_a_membership_can_be_cancelled(client):
    client.force_login(member("manager", "north", is_staff=True))
    membership = Membership.objects.create(user=UserFactory(), owner_id="north", role="viewer")
    url = reverse("admin:access_app_membership_delete", args=[membership.pk])

    page = client.get(url).content.decode()
    client.post(url, {"post": "yes"})

    change_url = reverse("admin:access_app_membership_change", args=[membership.pk])
    assert f'href="{change_url}">Cancel</a>' in page
    assert not Membership.objects.filter(pk=membership.pk).exists()


def test_deleting_selected_memberships_can_be_cancelled(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    membership = Membership.objects.create(user=UserFactory(), owner_id="north", role="viewer")
    url = reverse("admin:access_app_membership_changelist")
    action = {"action": "delete_selected", "_selected_action": [membership.pk]}

    page = client.post(url, action).content.decode()
    client.post(url, {**action, "post": "yes"})

    assert f'href="{url}">Cancel</a>' in page
    assert "The selected membership is deleted with" in page
    assert not Membership.objects.filter(pk=membership.pk).exists()
