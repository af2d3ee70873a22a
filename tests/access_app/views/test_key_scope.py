"""Keys for one resource, for the end users of a team, and with facts about their caller: who creates which."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from access_app.models import ApiKey
from tests.factories import UserFactory, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db

KEYS = reverse("account:keys")
ADD = reverse("admin:access_app_apikey_add")


def team_keys(owner):
    return f"{reverse('account:team_keys')}?owner={owner}"


def typed(**changed):
    return {"name": "Chat", "role": "editor", "expires_at": "90", "resource": "", "context": "", **changed}


def test_a_user_binds_a_key_to_a_resource():
    client = browser(member("editor"))

    page = client.post(KEYS, typed(resource="alice", context='{"plan": "pro"}')).content.decode()

    key = ApiKey.objects.get()
    assert (key.resource, key.context, key.realm_owner) == ("alice", {"plan": "pro"}, None)
    assert "only for the resource" in page
    assert "plan = pro" in page


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("resource", "x" * 257, "at most 256"),
        ("resource", "a\tb", "printable"),
        ("context", "{", "not valid JSON"),
        ("context", "[" * 50_000, "not valid JSON"),
        ("context", '{"plan": "\\ud800"}', "not valid JSON"),
        ("context", "plan", "Line 1 has no name."),
        ("context", "plan: pro\n\nplan: free", "“plan” is set twice."),
        ("context", "roles: manager", "knows roles"),
        ("context", "plan: a\x00b", "plan: Text must not contain a NUL character."),
        ("context", "[1]", "must be a JSON object"),
        ("context", '{"roles": ["manager"]}', "knows roles"),
        ("context", '{"a": "%s"}' % ("x" * 9000), "must not exceed 8 KB"),
    ],
)
def test_what_a_key_cannot_have_stands_at_the_field(field, text, message):
    answer = browser(member("editor")).post(KEYS, typed(**{field: text}))

    assert answer.status_code == 422
    assert message in str(answer.context["form"].errors[field])
    assert not ApiKey.objects.exists()


def test_facts_begin_blank():
    page = browser(member("editor")).get(KEYS).content.decode()

    assert page[page.index('<textarea name="context"') :].split(">", 1)[1].split("</textarea>")[0].strip() == ""


def test_facts_are_typed_one_per_line():
    text = 'plan: pro\r\n\r\nseats: 50\r\ntrial: false\r\ncode: "007"\r\nnote: a: b'

    browser(member("editor")).post(KEYS, typed(context=text))

    facts = {"plan": "pro", "seats": 50, "trial": False, "code": "007", "note": "a: b"}
    assert ApiKey.objects.get().context == facts


def test_a_number_that_no_database_stores_is_a_text():
    numbers = {"account": "12345678901234567891", "huge": "9" * 5000, "large": "1e999", "small": 12.5, "round": 1e22}

    browser(member("editor")).post(
        KEYS, typed(context="\n".join(f"{name}: {number}" for name, number in numbers.items()))
    )

    assert ApiKey.objects.get().context == numbers


def test_a_fact_may_have_any_name():
    page = browser(member("editor")).post(KEYS, typed(context="items: 5\nkeys: a")).content.decode()

    assert "items = 5" in page
    assert "keys = a" in page


def test_facts_with_a_fault_stay_as_they_were_typed():
    page = browser(member("editor")).post(KEYS, typed(context="plan: pro\nseats")).content.decode()

    assert "Line 2 has no name." in page
    assert "plan: pro\nseats</textarea>" in page.replace("\r\n", "\n")


def test_managers_issue_keys_for_the_end_users_of_their_team():
    ann = member("manager", "support", username="ann")
    client = browser(ann)

    assert team_keys("support") in client.get(reverse("account:team")).content.decode()
    answer = client.post(team_keys("support"), typed(resource="bob"))

    key = ApiKey.objects.find(answer.context["token"])
    assert (key.user, key.realm_owner, key.resource, key.role) == (ann, "support", "bob", "editor")
    listed = client.get(team_keys("support")).content.decode()
    assert "Chat" in listed
    assert answer.context["token"] not in listed
    assert client.post(team_keys("support"), typed(role="viewer")).status_code == 422


def test_only_managers_see_issue_and_revoke_the_keys_of_a_team():
    key, _ = ApiKey.objects.issue(member("manager", "support"), name="Chat", realm_owner="support")
    revoke = reverse("account:revoke_key", args=[key.pk])

    for stranger in (member("publisher", "support"), member("manager", "sales"), UserFactory()):
        client = browser(stranger)
        assert client.get(team_keys("support")).status_code == 403
        assert client.post(team_keys("support"), typed()).status_code == 403
        assert client.post(revoke).status_code == 404
    assert ApiKey.objects.valid().count() == 1
    answer = browser(member("manager", "support")).post(f"{revoke}?team=yes")
    assert answer["Location"] == team_keys("support")
    assert not ApiKey.objects.valid().exists()


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}], ids=["page", "dialog"])
def test_managers_who_revoke_their_own_key_of_a_team_return_to_its_keys(headers):
    ann = member("manager", "support")
    key, _ = ApiKey.objects.issue(ann, name="Chat", realm_owner="support")
    client = browser(ann)
    question = client.get(f"{reverse('account:revoke_key', args=[key.pk])}?team=yes", headers=headers)
    (action,) = re.findall(r'id="act-form" method="post" action="([^"]+)"', question.content.decode())

    answer = client.post(action, headers=headers)

    assert answer.headers["HX-Redirect" if headers else "Location"] == team_keys("support")


def test_managers_revoke_the_key_of_a_deactivated_user_which_would_work_again():
    ann = member("manager", "support")
    key, _ = ApiKey.objects.issue(ann, name="Chat", realm_owner="support")
    User.objects.filter(pk=ann.pk).update(is_active=False)
    client, revoke = browser(member("manager", "support")), reverse("account:revoke_key", args=[key.pk])

    listed = client.get(team_keys("support")).content.decode()

    assert "User deactivated" in listed
    assert "Expired" not in listed
    assert f"{revoke}?team=yes" in listed
    assert "There is nothing to revoke" not in client.get(revoke).content.decode()


def test_the_role_of_a_key_without_one_is_that_of_its_user():
    ann, root = member("manager", "support"), UserFactory(is_superuser=True)
    key, _ = ApiKey.objects.issue(ann, name="Chat", realm_owner="support")
    revoke = reverse("account:revoke_key", args=[key.pk])

    assert "<dt>Role</dt><dd>Same as my role</dd>" in browser(ann).get(revoke).content.decode()
    assert "<dt>Role</dt><dd>Same as the user</dd>" in browser(root).get(revoke).content.decode()


def test_a_superuser_revokes_the_key_of_a_team_without_members():
    key, _ = ApiKey.objects.issue(UserFactory(), name="Chat", realm_owner="abandoned")

    answer = browser(UserFactory(is_superuser=True)).post(reverse("account:revoke_key", args=[key.pk]))

    assert answer["Location"] == team_keys("abandoned")
    assert not ApiKey.objects.valid().exists()


def test_the_admin_issues_keys_for_managed_teams():
    staff = member("manager", "support", is_staff=True)
    client = browser(staff)
    fields = {"user": staff.pk, "name": "Chat", "role": "editor", "expires_at": "", "context": '{"plan": "pro"}'}

    refused = client.post(ADD, {**fields, "realm_owner": "team:sales", "resource": ""})
    client.post(ADD, {**fields, "realm_owner": "team:support", "resource": "alice"})

    assert "valid choice" in refused.content.decode()
    key = ApiKey.objects.get()
    assert (key.realm_owner, key.resource, key.context) == ("support", "alice", {"plan": "pro"})
    page = client.get(reverse("admin:access_app_apikey_change", args=[key.pk])).content.decode()
    assert "alice" in page


def test_the_admin_issues_no_key_that_has_expired():
    root = UserFactory(is_superuser=True, is_staff=True)
    fields = {"user": root.pk, "name": "Chat", "role": "", "expires_at": "2020-01-01T00:00", "context": ""}

    answer = browser(root).post(ADD, {**fields, "realm_owner": "", "resource": ""})

    assert "Choose a time in the future (UTC)" in answer.content.decode()
    assert not ApiKey.objects.exists()


def test_the_user_of_a_key_for_end_users_is_an_editor_there():
    root = UserFactory(is_superuser=True, is_staff=True)
    member("manager", "support")
    user = member("viewer", "support")
    fields = {"user": user.pk, "name": "Chat", "role": "", "expires_at": "", "resource": "", "context": ""}

    answer = browser(root).post(ADD, {**fields, "realm_owner": "team:support"})

    assert "is not an editor of support" in answer.content.decode()
    assert not ApiKey.objects.exists()
