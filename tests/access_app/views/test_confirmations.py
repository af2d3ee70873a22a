"""Revoking a key and removing a member ask first: what is affected, and when it was last used."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from access_app.models import ApiKey, Membership
from access_app.role import Role
from tests.factories import MembershipFactory, UserFactory, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return member(Role.PUBLISHER, "support", username="ann")


@pytest.fixture
def manager():
    return member(Role.MANAGER, "support", username="mo")


@pytest.fixture
def key(ann):
    return ApiKey.objects.issue(ann, name="Nightly export", role=Role.EDITOR)[0]


def text(answer):
    return " ".join(answer.content.decode().split())


def remove_url(user):
    return reverse("account:remove_member", args=[user.memberships.get().pk])


# --- Keys


def test_the_list_of_keys_links_to_the_question(ann, key):
    page = text(browser(ann).get(reverse("account:keys")))

    assert f'href="{reverse("account:revoke_key", args=[key.pk])}"' in page
    assert all(f'scope="col">{column}<' in page for column in ("Name", "Role", "Created", "Last used"))
    assert f'action="{reverse("account:revoke_key", args=[key.pk])}"' not in page


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}], ids=["page", "dialog"])
def test_the_question_names_the_key_and_its_last_use(ann, key, headers):
    ApiKey.objects.update(last_used_at=timezone.now() - timedelta(days=3))

    page = text(browser(ann).get(reverse("account:revoke_key", args=[key.pk]), headers=headers))

    assert ("<dialog" in page and "<html" not in page) is bool(headers)
    assert "Revoke “Nightly export”?" in page
    assert "3 days ago" in page
    assert "Programs with this key get a 401 immediately. This cannot be undone." in page
    assert ">Revoke “Nightly export”</button>" in page
    assert ">Cancel<" in page
    assert "A program used this key" not in page
    assert ApiKey.objects.get().is_valid


def test_a_key_that_a_program_used_today_is_a_warning(ann, key):
    ApiKey.objects.update(last_used_at=timezone.now() - timedelta(minutes=5))

    assert "A program used this key" in text(browser(ann).get(reverse("account:revoke_key", args=[key.pk])))


def test_the_button_of_the_question_revokes(ann, key):
    url = reverse("account:revoke_key", args=[key.pk])

    page = browser(ann).post(url, follow=True)
    dialog = browser(ann).post(url, headers={"HX-Request": "true"})

    assert "The key “Nightly export” was revoked. It no longer works." in text(page)
    assert dialog.headers["HX-Redirect"] == reverse("account:keys")
    assert not ApiKey.objects.get().is_valid


def test_a_revoked_key_cannot_be_revoked_again(ann, key):
    key.revoke()

    page = text(browser(ann).get(reverse("account:revoke_key", args=[key.pk])))

    assert "This key no longer works. There is nothing to revoke." in page
    assert 'disabled title="This key no longer works.' in page


def test_the_keys_of_other_users_have_no_question(key):
    assert browser(UserFactory()).get(reverse("account:revoke_key", args=[key.pk])).status_code == 404


# --- Members


def test_the_page_of_a_team_links_to_the_question(manager, ann):
    page = text(browser(manager).get(reverse("account:team")))

    assert f'href="{remove_url(ann)}"' in page
    assert 'name="remove"' not in page


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}], ids=["page", "dialog"])
def test_the_question_says_what_the_member_loses(manager, ann, key, headers):
    ApiKey.objects.update(last_used_at=timezone.now() - timedelta(days=3))
    ApiKey.objects.issue(ann, name="Revoked")[0].revoke()

    page = text(browser(manager).get(remove_url(ann), headers=headers))

    assert "Remove ann from support?" in page
    assert "ann loses access to the agents of support immediately." in page
    assert "<dd>Publisher</dd>" in page
    assert "1, which lose this access too; last used <time" in page
    assert "3 days ago" in page
    assert ">Remove ann</button>" in page
    assert Membership.objects.filter(user=ann).exists()


def test_the_button_of_the_question_removes(manager, ann):
    url = remove_url(ann)

    answer = browser(manager).post(url, headers={"HX-Request": "true"})

    assert answer.headers["HX-Redirect"] == f"{reverse('account:team')}?owner=support"
    assert not Membership.objects.filter(user=ann).exists()


def test_the_last_manager_cannot_be_removed(manager):
    page = text(browser(manager).get(remove_url(manager)))

    assert "The team support needs at least one manager. Add another manager first." in page
    assert "loses access" not in page
    assert "disabled" in page.partition("act-form")[2]


@pytest.mark.parametrize("method", ["get", "post"])
def test_only_managers_of_the_team_can_remove(ann, manager, method):
    stranger = member(Role.MANAGER, "newsroom")

    assert getattr(browser(ann), method)(remove_url(manager)).status_code == 404
    assert getattr(browser(stranger), method)(remove_url(ann)).status_code == 404
    assert Membership.objects.filter(user__in=[ann, manager]).count() == 2


def test_the_page_of_a_role_removes_nobody(manager, ann):
    url = reverse("account:member", args=[ann.memberships.get().pk])

    for sent in ({"remove": "yes"}, {"role": ""}, {"role": "boss"}, {}):
        answer = browser(manager).post(url, sent, follow=True)

    assert "The role was not changed. Choose one of the list." in text(answer)
    assert ann.memberships.get().role == "publisher"


def test_a_changed_role_has_undo(manager, ann):
    client, url = browser(manager), reverse("account:member", args=[ann.memberships.get().pk])

    page = text(client.post(url, {"role": "viewer"}, follow=True))
    assert f'hx-post="{url}?role=publisher&amp;seen=viewer"' in page
    client.post(f"{url}?role=publisher&seen=viewer")

    assert ann.memberships.get().role == "publisher"


def test_managers_who_give_up_their_role_have_no_undo(manager):
    MembershipFactory(owner_id="support", role=Role.MANAGER)
    url = reverse("account:member", args=[manager.memberships.get().pk])

    page = text(browser(manager).post(url, {"role": "viewer"}, follow=True))

    assert "hx-post" not in page.partition('id="toasts"')[2].partition("</div>")[0]
