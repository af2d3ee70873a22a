"""The pages of keys, password and team members."""

import re
from html import escape
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from access_app import views
from access_app.models import ApiKey, Membership
from access_app.role import Role
from tests.factories import PASSWORD, MembershipFactory, UserFactory, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return member(Role.PUBLISHER, username="ann")


def test_a_new_key_is_displayed_once(ann):
    client = browser(ann)

    response = client.post(reverse("account:keys"), {"name": "Export", "role": "viewer", "expires_at": "30"})

    token = response.context["token"]
    assert token in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    assert ApiKey.objects.find(token).role == "viewer"
    assert token not in client.get(reverse("account:keys")).content.decode()


@pytest.mark.parametrize("address", ["/account/keys", "/team/keys?owner=support"])
def test_a_reload_of_the_page_with_a_new_key_creates_no_second_one(address):
    client = browser(member(Role.MANAGER, owner_id="support"))
    sent = {"name": "Export", "role": "editor", "expires_at": "30", "form_id": form_id_of(client.get(address))}
    client.post(address, sent)

    again = client.post(address, sent)

    assert again.status_code == 422
    assert "This form was already sent, and its key was created." in again.content.decode()
    assert ApiKey.objects.count() == 1
    client.post(address, {**sent, "form_id": form_id_of(again)})
    assert ApiKey.objects.count() == 2


@pytest.mark.parametrize("address", ["/account/keys", "/team/keys?owner=support"])
def test_a_form_whose_key_could_not_be_stored_can_be_sent_again(address, monkeypatch):
    client = browser(member(Role.MANAGER, owner_id="support"))
    client.raise_request_exception = False
    sent = {"name": "Export", "role": "editor", "expires_at": "30", "form_id": form_id_of(client.get(address))}
    with monkeypatch.context() as outage:
        outage.setattr(ApiKey, "save", Mock(side_effect=OperationalError("The database is away.")))
        assert client.post(address, sent).status_code == 503

    client.post(address, sent)

    assert ApiKey.objects.count() == 1


def form_id_of(response):
    return re.findall(r'name="form_id" value="([^"]+)"', response.content.decode())[0]


def test_the_focus_is_on_the_button_that_copies_a_new_key(ann):
    response = browser(ann).post(reverse("account:keys"), {"name": "Export", "role": "", "expires_at": ""})

    html = response.content.decode()
    (button,) = re.findall(r"<button[^>]* autofocus[^>]*>", html)
    assert 'data-copy="token"' in button
    # Screen readers say the name and the description of the focused button.
    described_by = re.findall(r'aria-describedby="([^"]*)"', button)[0].split()
    assert all(f'id="{name}"' in html for name in described_by)


def test_a_key_without_expiry_says_never(ann):
    browser(ann).post(reverse("account:keys"), {"name": "Export", "role": "", "expires_at": ""})

    assert ApiKey.objects.get().expires_at is None


def test_a_revoked_key_is_refused(ann):
    key, token = ApiKey.objects.issue(ann, name="Export")

    browser(ann).post(reverse("account:revoke_key", args=[key.pk]))

    assert ApiKey.objects.find(token) is None


def test_keys_of_other_users_are_not_found(ann):
    key, token = ApiKey.objects.issue(UserFactory(), name="Theirs")
    client = browser(ann)

    assert "Theirs" not in client.get(reverse("account:keys")).content.decode()
    assert client.post(reverse("account:revoke_key", args=[key.pk])).status_code == 404
    assert ApiKey.objects.find(token)


def test_a_new_password_does_not_activate_a_user_again(ann, monkeypatch):
    set_password = User.set_password

    def deactivate_meanwhile(user, password):
        User.objects.update(is_active=False)
        set_password(user, password)

    here = browser(ann)
    monkeypatch.setattr(User, "set_password", deactivate_meanwhile)
    new = {"new_password1": "another long password", "new_password2": "another long password"}
    here.post(reverse("account:password"), {"old_password": PASSWORD, **new})

    ann.refresh_from_db()
    assert ann.check_password("another long password")
    assert not ann.is_active


def test_a_password_set_in_the_admin_does_not_activate_a_user_again(ann, monkeypatch):
    set_password = User.set_password

    def deactivate_meanwhile(user, password):
        User.objects.filter(pk=ann.pk).update(is_active=False)
        set_password(user, password)

    root = browser(UserFactory(is_superuser=True, is_staff=True))
    monkeypatch.setattr(User, "set_password", deactivate_meanwhile)
    new = {"password1": "another long password", "password2": "another long password"}
    root.post(reverse("admin:auth_user_password_change", args=[ann.pk]), {**new, "usable_password": "true"})

    ann.refresh_from_db()
    assert ann.check_password("another long password")
    assert not ann.is_active


def test_the_admin_leads_to_the_page_of_the_password(ann):
    for send in (browser(ann).get, browser(ann).post):
        assert send(reverse("admin:password_change"))["Location"] == reverse("account:password")


def test_changing_the_password_signs_out_other_browsers(ann):
    here, elsewhere = browser(ann), browser(ann)
    new = "another long password"

    here.post(reverse("account:password"), {"old_password": PASSWORD, "new_password1": new, "new_password2": new})

    assert here.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302
    assert Client().login(username="ann", password=new)


# --- Team


@pytest.fixture
def manager():
    return member(Role.MANAGER, "support", username="mo")


def team(owner_id="support"):
    return f"{reverse('account:team')}?owner={owner_id}"


def test_a_manager_adds_changes_and_removes_members(manager, ann):
    client = browser(manager)

    added = client.post(team(), {"username": "ann", "role": "editor"}, follow=True)
    assert "ann now has the Editor role." in added.content.decode()
    membership = Membership.objects.get(user=ann, owner_id="support")
    assert membership.role == "editor"
    client.post(reverse("account:member", args=[membership.pk]), {"role": "viewer"})
    membership.refresh_from_db()
    assert membership.role == "viewer"
    client.post(reverse("account:remove_member", args=[membership.pk]))
    assert not Membership.objects.filter(pk=membership.pk).exists()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR, Role.PUBLISHER])
def test_only_managers_change_members(role):
    person = member(role, "support")
    other = MembershipFactory(owner_id="support")
    client = browser(person)

    assert client.get(team()).status_code == 403
    assert client.post(reverse("account:member", args=[other.pk]), {"role": "manager"}).status_code == 404


def test_a_manager_cannot_change_another_team(manager):
    other = MembershipFactory(owner_id="newsroom")
    client = browser(manager)

    assert client.get(team("newsroom")).status_code == 403
    assert client.post(team("newsroom"), {"username": "mo", "role": "manager"}).status_code == 403
    assert client.post(reverse("account:remove_member", args=[other.pk])).status_code == 404


@pytest.mark.parametrize("name", ["member", "remove_member"])
@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_member_who_has_left_the_team_meanwhile_is_not_changed(manager, monkeypatch, name, is_deleted):
    """The row is deleted, or moved to another team, after it was found."""
    left = MembershipFactory(owner_id="support", user=UserFactory(username="lee"))
    rows = Membership.objects.filter(pk=left.pk)
    managed_membership = views.managed_membership

    def leave_meanwhile(*args):
        membership = managed_membership(*args)
        if is_deleted:
            rows.delete()
        else:
            rows.update(owner_id="newsroom")
        return membership

    monkeypatch.setattr(views, "managed_membership", leave_meanwhile)
    answer = browser(manager).post(reverse(f"account:{name}", args=[left.pk]), {"role": "editor"}, follow=True)

    assert "lee is no longer a member of support: somebody has changed this meanwhile." in answer.content.decode()
    assert [*rows.values_list("owner_id", "role")] == ([] if is_deleted else [("newsroom", "viewer")])


def test_the_undo_of_a_role_leads_to_the_one_that_was_replaced(manager, monkeypatch):
    other = MembershipFactory(owner_id="support")
    managed_membership = views.managed_membership

    def change_meanwhile(*args):
        membership = managed_membership(*args)
        Membership.objects.filter(pk=other.pk).update(role=Role.PUBLISHER)
        return membership

    monkeypatch.setattr(views, "managed_membership", change_meanwhile)
    address = reverse("account:member", args=[other.pk])
    page = browser(manager).post(address, {"role": "editor"}, follow=True)

    assert f"{address}?role=publisher&amp;seen=editor" in page.content.decode()


@pytest.mark.parametrize(
    ("role", "message"), [("editor", "somebody else gave lee the Publisher role"), ("publisher", "")]
)
def test_a_role_that_another_manager_changed_meanwhile_is_not_replaced(manager, role, message):
    other = MembershipFactory(owner_id="support", user=UserFactory(username="lee"), role=Role.PUBLISHER)
    address = reverse("account:member", args=[other.pk])

    page = browser(manager).post(address, {"role": role, "seen": "viewer"}, follow=True)

    other.refresh_from_db()
    assert other.role == "publisher"
    assert ("Nothing was changed" in page.content.decode()) == bool(message)
    assert message in page.content.decode()


def test_a_large_team_has_pages_and_a_search(manager):
    for number in range(60):
        MembershipFactory(owner_id="support", user=UserFactory(username=f"user{number:02}", last_name=f"Ö-{number}"))
    client = browser(manager)

    first = client.get(team())
    second = client.get(f"{team()}&page=2")
    matching = client.get(f"{team()}&q=ö-59")

    assert [len(page.context["page"]) for page in (first, second, matching)] == [50, 11, 1]
    assert "owner=support&amp;page=2" in first.content.decode()
    assert "user59" in matching.content.decode()
    assert "No member has" in client.get(f"{team()}&q=nobody").content.decode()


def test_the_words_of_a_very_long_search_of_members_are_limited(manager):
    MembershipFactory(owner_id="support", user=UserFactory(username="lee"))

    page = browser(manager).get(team(), {"owner": "support", "q": "lee " * 1500})

    assert [member.user.username for member in page.context["page"]] == ["lee"]


@pytest.mark.parametrize(("name", "sent"), [("member", {"role": "editor"}), ("remove_member", {})])
def test_a_changed_member_leads_back_to_the_same_page_of_a_search(manager, name, sent):
    other = MembershipFactory(owner_id="support", user=UserFactory(username="lee"))
    client, place = browser(manager), "q=le&page=2"
    address = f"{reverse(f'account:{name}', args=[other.pk])}?{place}"

    assert escape(address) in client.get(f"{team()}&{place}").content.decode()
    answer = client.post(address, sent)

    assert answer.url == f"{team()}&{place}"


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}], ids=["page", "dialog"])
@pytest.mark.parametrize(
    ("name", "sent", "message"),
    [
        ("member", {"role": "editor"}, "mo now has the Editor role."),
        ("remove_member", {}, "mo is no longer a member."),
    ],
)
def test_managers_who_end_their_own_role_get_the_page_of_their_teams(manager, name, sent, message, headers):
    member(Role.MANAGER, "support")
    client = browser(manager)

    answer = client.post(reverse(f"account:{name}", args=[manager.memberships.get().pk]), sent, headers=headers)

    assert answer.headers["HX-Redirect" if headers else "Location"] == reverse("account:team")
    assert message in client.get(reverse("account:team")).content.decode()


@pytest.mark.parametrize("address", ["/account/keys", "/team/keys?owner=support"])
def test_many_keys_have_pages(manager, address):
    for number in range(51):
        ApiKey.objects.issue(manager, name=f"Key {number}", realm_owner="support")

    first = browser(manager).get(address)
    query = address.partition("?")[2]
    matching, none = (browser(manager).get(f"{address.partition('?')[0]}?{query}&q={q}") for q in ("KEY 50", "none"))

    assert len(first.context["page"]) == 50
    assert "51 keys" in first.content.decode()
    assert [key.name for key in matching.context["page"]] == ["Key 50"]
    assert f'<a href="?{query}">Show all keys' in none.content.decode()


def test_a_username_is_found_in_any_unicode_form(manager):
    zoe = UserFactory(username="zo\N{LATIN SMALL LETTER E WITH DIAERESIS}")

    browser(manager).post(team(), {"username": "zoe\N{COMBINING DIAERESIS}", "role": "editor"})

    assert Membership.objects.filter(user=zoe, owner_id="support").exists()


def test_adding_an_unknown_user_is_an_error(manager):
    answer = browser(manager).post(team(), {"username": "nobody", "role": "editor"})

    assert answer.status_code == 422
    assert "There is no user with this username." in answer.content.decode()


def test_a_member_without_a_managed_team_sees_the_own_teams(ann):
    answer = browser(ann).get(reverse("account:team"))

    assert "Shared" in answer.content.decode()
    assert "Publisher" in answer.content.decode()


def linked_teams(client, address):
    """Return the teams that the page links to."""
    text = client.get(address).content.decode()
    return re.findall(r'<option value="([^"]*)"', text.partition('id="team"')[2].partition("</select>")[0])


def test_a_manager_sees_each_managed_team_and_the_own_roles_in_others(manager):
    MembershipFactory(user=manager, owner_id="newsroom", role=Role.MANAGER)
    MembershipFactory(user=manager, owner_id="lab", role=Role.EDITOR)
    client = browser(manager)

    html = client.get(team("newsroom")).content.decode()

    assert linked_teams(client, team("newsroom")) == ["newsroom", "support"]
    assert "Newsroom team" in html
    assert "<dt>lab</dt><dd>Editor</dd>" in html
    assert 'id="team"' not in browser(member(Role.MANAGER, "lab")).get(team("lab")).content.decode()


def test_a_superuser_sees_every_team_and_creates_a_new_one(manager, ann):
    MembershipFactory(owner_id="newsroom")
    client = browser(UserFactory(is_superuser=True))

    assert linked_teams(client, reverse("account:team")) == ["", "newsroom", "support"]
    assert "No members yet" in client.get(team("brand-new")).content.decode()
    client.post(team("brand-new"), {"username": "ann", "role": "manager"})
    assert linked_teams(client, team("brand-new")) == ["", "brand-new", "newsroom", "support"]


@pytest.mark.parametrize("owner_id", ["a%00b", "x" * 129, "%20"])
def test_an_invalid_owner_has_no_team_page(owner_id, ann):
    client = browser(UserFactory(is_superuser=True))

    assert client.get(team(owner_id)).status_code == 404
    assert client.post(team(owner_id), {"username": "ann", "role": "viewer"}).status_code == 404
