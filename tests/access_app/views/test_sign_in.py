"""Signing in, redirects afterwards and throttling of attempts."""

import re
import time
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from redis.exceptions import ConnectionError as CacheIsAway

from access_app.models import SignInAttempt
from access_app.throttling import sign_in as throttling_sign_in
from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_attempts():
    cache.clear()


@pytest.fixture
def user():
    return UserFactory(username="ann")


def sign_in(client, username="ann", password=PASSWORD, **more):
    return client.post(reverse("login"), {"username": username, "password": password, **more})


COMMAND = ".venv/bin/python manage.py create_user NAME --superuser"


def test_the_page_says_what_the_product_is(client):
    page = client.get(reverse("login")).content.decode()

    assert "Agent CMS" in page
    assert "Edit, test, publish and run AI agents as a team" in page


def test_an_empty_database_says_how_to_create_the_first_user(client):
    page = client.get(reverse("login")).content.decode()

    assert "There are no users yet" in page
    assert COMMAND in page


def test_a_database_with_users_does_not(client, user):
    assert COMMAND not in client.get(reverse("login")).content.decode()


def focused(answer):
    """The names of the fields that the page focuses."""
    inputs = re.findall(r"<input[^>]*>", answer.content.decode())
    return [re.search(r'name="(\w+)"', tag)[1] for tag in inputs if "autofocus" in tag]


def test_the_first_page_focuses_the_username(client, user):
    assert focused(client.get(reverse("login"))) == ["username"]


@pytest.mark.parametrize(
    ("sent", "first"),
    [
        ({"username": "", "password": ""}, "username"),
        ({"username": "ann", "password": ""}, "password"),
        ({"username": "ann", "password": "wrong"}, "password"),
    ],
)
def test_an_error_focuses_its_field(client, user, sent, first):
    assert focused(client.post(reverse("login"), sent)) == [first]


def test_errors_are_in_lines_below_their_fields(client, user):
    page = client.post(reverse("login"), {"username": "", "password": ""}).content.decode()

    for name in ("username", "password"):
        error = page.partition(f'id="id_{name}_error"')[2].partition("</div>")[0]
        assert "This is required." in error
    assert page.count('aria-invalid="true"') == 2
    assert "novalidate" in page


def test_signing_out_leads_to_no_page_that_continues(client, user):
    client.force_login(user)

    response = client.post(reverse("logout"), headers={"Referer": "http://testserver/agents/a"})

    assert response["Location"] == reverse("login")


@pytest.mark.parametrize(("path", "is_mentioned"), [("/", False), ("/runs/", False), ("/agents/a", True)])
def test_only_the_way_to_an_agent_mentions_unsaved_text(client, path, is_mentioned):
    assert (b"unsaved text of an agent" in client.get(reverse("login"), {"next": path}).content) is is_mentioned


def test_signing_in_creates_a_new_session(client, user):
    client.get(reverse("login"))
    client.session["seen"] = 1
    client.session.save()
    before = client.session.session_key

    answer = sign_in(client)

    assert answer.status_code == 302
    assert answer.url == "/"
    assert client.session.session_key != before


@pytest.mark.parametrize("address", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_next_redirects_to_this_site_only(client, user, address):
    assert sign_in(client, next=address).url == "/"


@pytest.mark.parametrize(
    ("is_staff", "address", "leads_to"),
    [
        (False, "/agents/x", "/agents/x"),
        (False, "x", "x"),
        (False, "", "/"),
        (True, "/admin/", "/admin/"),
        (False, "/admin/", None),
    ],
)
def test_who_is_signed_in_gets_the_page_and_not_the_form(client, user, is_staff, address, leads_to):
    user.is_staff = is_staff
    user.save()
    client.force_login(user)

    answer = client.get(reverse("login"), {"next": address})

    assert answer.headers.get("Location") == leads_to
    assert ("Your account cannot open that page." in answer.content.decode()) == (leads_to is None)


def test_signing_in_returns_to_the_requested_page(client, user):
    assert client.get("/new-agent").url == "/sign-in?next=/new-agent"
    assert sign_in(client, next="/new-agent").url == "/new-agent"


def test_the_admin_uses_the_same_sign_in_page(client):
    answer = client.get("/admin/login/?next=/admin/")

    assert (answer.status_code, answer.url) == (302, "/sign-in?next=/admin/")


def test_too_many_attempts_are_refused_before_the_password_is_hashed(client, user, monkeypatch):
    for _ in range(throttling_sign_in.MAX_PER_PAIR):
        assert sign_in(client, password="wrong").status_code == 422
    monkeypatch.setattr(get_user_model(), "check_password", lambda *args: pytest.fail("hashed"))

    answer = sign_in(client)

    assert answer.status_code == 429
    assert "Too many sign-in attempts. Wait 5 minutes and try again." in answer.content.decode()
    assert int(answer["Retry-After"]) <= throttling_sign_in.ATTEMPT_WINDOW


def test_attempts_are_counted_per_name_until_the_address_limit(client, user):
    for number in range(throttling_sign_in.MAX_PER_ADDRESS):
        sign_in(client, username=f"name{number}", password="wrong")

    assert sign_in(client).status_code == 429
    assert sign_in(Client(REMOTE_ADDR="10.0.0.9")).status_code == 302


def test_failed_attempts_do_not_lock_the_user_out_at_other_addresses(client, user):
    for _ in range(throttling_sign_in.MAX_PER_PAIR + throttling_sign_in.MAX_PER_USERNAME):
        sign_in(client, password="wrong")

    assert sign_in(client).status_code == 429
    assert sign_in(Client(REMOTE_ADDR="10.0.0.9")).status_code == 302


def test_attempts_from_many_addresses_reach_a_limit(client, user, monkeypatch):
    monkeypatch.setattr(throttling_sign_in, "MAX_PER_USERNAME", 20)
    for number in range(20):
        assert sign_in(Client(REMOTE_ADDR=f"10.0.{number}.1"), password="wrong").status_code == 422

    answer = sign_in(Client(REMOTE_ADDR="10.1.0.1"))

    assert (answer.status_code, sign_in(Client(REMOTE_ADDR="10.1.0.1"), "bob").status_code) == (429, 422)
    assert int(answer["Retry-After"]) <= throttling_sign_in.ATTEMPT_WINDOW


def test_addresses_of_one_ipv6_network_count_together(client, user):
    for number in range(throttling_sign_in.MAX_PER_PAIR):
        sign_in(Client(REMOTE_ADDR=f"2001:db8::{number:x}"), password="wrong")

    assert sign_in(Client(REMOTE_ADDR="2001:db8::ffff:1")).status_code == 429
    assert sign_in(Client(REMOTE_ADDR="2001:db8:0:1::1")).status_code == 302
    assert sign_in(Client(REMOTE_ADDR="::ffff:10.0.0.1")).status_code == 302


def test_attempts_for_many_names_from_one_ipv6_network_reach_a_limit(client, user):
    for number in range(throttling_sign_in.MAX_PER_ADDRESS):
        sign_in(Client(REMOTE_ADDR=f"2001:db8::{number:x}"), f"name-{number}", "wrong")

    assert sign_in(Client(REMOTE_ADDR="2001:db8::ffff:1")).status_code == 429
    assert sign_in(Client(REMOTE_ADDR="2001:db8:0:1::1")).status_code == 302


def test_a_correct_password_resets_the_attempts(client, user):
    for _ in range(throttling_sign_in.MAX_PER_PAIR - 1):
        sign_in(client, password="wrong")

    assert sign_in(client).status_code == 302
    assert sign_in(Client()).status_code == 302


def test_without_the_cache_attempts_are_counted_in_the_database(client, user, monkeypatch):
    def away(*args):
        raise CacheIsAway

    monkeypatch.setattr(cache, "add", away)
    monkeypatch.setattr(cache, "delete", away)
    for _ in range(throttling_sign_in.MAX_PER_PAIR):
        sign_in(client, password="wrong")

    assert (sign_in(client).status_code, sign_in(client, "bob").status_code) == (429, 422)
    SignInAttempt.objects.update(count=0)
    assert sign_in(client).status_code == 302
    assert SignInAttempt.objects.filter(key__contains="pair").count() == 1  # that of bob


def test_attempts_in_the_database_count_until_their_window_ends(client, user, monkeypatch):
    def away(*args):
        raise CacheIsAway

    monkeypatch.setattr(cache, "add", away)
    monkeypatch.setattr(cache, "delete", away)
    for _ in range(throttling_sign_in.MAX_PER_PAIR + 1):
        sign_in(client, password="wrong")
    SignInAttempt.objects.update(ends_at=timezone.now())

    assert sign_in(client).status_code == 302


def change_password(client, old, new="another long password"):
    typed = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post(reverse("account:password"), typed)


def test_wrong_current_passwords_count_as_attempts_to_sign_in(client, user, monkeypatch):
    client.force_login(user)
    for _ in range(throttling_sign_in.MAX_PER_PAIR):
        assert change_password(client, "wrong").status_code == 422
    monkeypatch.setattr(get_user_model(), "check_password", lambda *args: pytest.fail("hashed"))

    answer = change_password(client, PASSWORD)

    assert answer.status_code == 429
    assert "Too many attempts. Wait 5 minutes and try again." in answer.content.decode()
    assert int(answer["Retry-After"]) <= throttling_sign_in.ATTEMPT_WINDOW
    assert sign_in(Client()).status_code == 429


def test_a_correct_current_password_resets_the_attempts(client, user):
    client.force_login(user)
    for _ in range(throttling_sign_in.MAX_PER_PAIR - 1):
        change_password(client, "wrong")

    assert change_password(client, PASSWORD).status_code == 302
    assert change_password(client, "wrong").status_code == 422


def test_signing_out_requires_post(client, user):
    sign_in(client)

    assert client.get(reverse("logout")).status_code == 405
    assert client.post(reverse("logout")).status_code == 302
    assert client.get("/").url == "/sign-in?next=/"


def test_a_window_that_ends_while_an_attempt_is_counted_leaves_no_count_for_ever(monkeypatch):
    def incr_after_the_end(key):
        """Do what Redis does with a key that expires after Django has found it."""
        cache.set(key, 1, timeout=None)
        return 1

    assert throttling_sign_in.seconds_over_limit("key", 1) == 0
    with monkeypatch.context() as patch:
        patch.setattr(cache, "incr", incr_after_the_end)
        assert throttling_sign_in.seconds_over_limit("key", 1) == 0
    assert throttling_sign_in.seconds_over_limit("key", 1) > 0

    later = throttling_sign_in.time.time() + throttling_sign_in.ATTEMPT_WINDOW + 1
    monkeypatch.setattr(throttling_sign_in.time, "time", lambda: later)

    assert throttling_sign_in.seconds_over_limit("key", 1) == 0


@pytest.mark.parametrize("has_cache", [True, False])
def test_a_clock_that_is_set_back_locks_nobody_out_until_its_old_time(db, monkeypatch, has_cache):
    def away(*args):
        raise CacheIsAway

    if not has_cache:
        monkeypatch.setattr(cache, "add", away)
    now, right_time = time.time(), timezone.now()
    with monkeypatch.context() as patch:
        patch.setattr(throttling_sign_in.time, "time", lambda: now + 3600)
        patch.setattr(timezone, "now", lambda: right_time + timedelta(hours=1))
        assert [bool(throttling_sign_in.seconds_over_limit("key", 2)) for _ in range(3)] == [False, False, True]

    counted = [throttling_sign_in.seconds_over_limit("key", 2) for _ in range(3)]

    assert [bool(seconds) for seconds in counted] == [False, False, True]
    assert counted[2] <= throttling_sign_in.ATTEMPT_WINDOW + 1


def test_the_admin_without_a_slash_leads_to_the_sign_in_page(client):
    assert client.get("/admin", follow=True).redirect_chain == [
        ("/admin/", 302),
        ("/admin/login/?next=/admin/", 302),
        ("/sign-in?next=%2Fadmin%2F", 302),
    ]
