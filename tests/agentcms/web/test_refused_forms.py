"""Responses to forms without a valid CSRF token: the reason, and the text that was typed."""

import json
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from tests.factories import AgentFactory, UserFactory, member

TYPED = {
    "name": "Night porter",
    "instructions": "Greet guests.\nAnswer briefly.",
    "api_key": "hidden value",
    "mcp-hash-x": "2f76a4",
}


@pytest.fixture
def browser() -> Client:
    return Client(enforce_csrf_checks=True)


def post(browser: Client, **headers: str) -> Any:
    return browser.post(reverse("agents:create"), TYPED, headers={"Referer": "http://testserver/new-agent", **headers})


def test_an_old_form_shows_what_was_typed(browser, db):
    browser.force_login(UserFactory())

    response = post(browser)

    page = response.content.decode()
    assert response.status_code == 403
    assert "This page was open for too long" in page
    assert "role" not in page.partition("<main")[2].partition("</main>")[0]
    assert "Greet guests.\nAnswer briefly." in page
    assert 'href="/new-agent"' in page
    assert "hidden value" not in page
    assert "2f76a4" not in page


def test_a_form_after_the_end_of_the_session_leads_to_the_sign_in(browser, db):
    page = post(browser).content.decode()

    assert "You have been signed out" in page
    assert "Answer briefly." in page


def test_a_valid_form_after_the_end_of_the_session_shows_what_was_typed(client, db):
    response = client.post(reverse("evals:new_scorer"), {"name": "Refunds", "key": "hidden value"})

    page = response.content.decode()
    assert response.status_code == 403
    assert "You have been signed out" in page
    assert "Refunds" in page
    assert "hidden value" not in page


@pytest.mark.parametrize(
    "fields", [{"input": '{"question":"hello"}'}, {"input": "Hello"}, {"ground_truth": "Yes"}, {"comment": "Wrong"}]
)
def test_a_single_word_that_was_typed_is_shown(client, db, fields):
    (text,) = fields.values()

    page = client.post(reverse("evals:add_item", args=["exam"]), fields).content.decode()

    assert "You have been signed out" in page
    assert escape(text) in page


def test_after_signing_in_a_form_with_choices_alone_is_opened_again(client, db):
    # Its own address answers no GET.
    headers = {"Referer": "http://testserver/runs?status=failed"}

    response = client.post(reverse("runs:score", args=[uuid.uuid4()]), {"score": "0.5"}, headers=headers)

    assert response["Location"] == f"{reverse('login')}?next=/runs%3Fstatus%3Dfailed"


@pytest.mark.parametrize(("fields", "headers"), [({"role": "1"}, {}), (TYPED, {"HX-Request": "true"})])
def test_without_typed_text_or_with_htmx_the_sign_in_page_follows(client, db, fields, headers):
    response = client.post(reverse("agents:create"), fields, headers=headers)

    assert response.status_code == 302
    assert response["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_an_invalid_referrer_is_no_page(browser, db, headers):
    response = post(browser, Referer="http://[::1/new-agent", **headers)

    assert response.status_code in (302, 403)
    assert "new-agent" not in response.headers.get("Location", "") + response.content.decode()


def test_htmx_can_repeat_a_request_with_the_new_token(browser, db):
    browser.force_login(UserFactory())
    agent = AgentFactory()

    response = browser.post(reverse("agents:edit", args=[agent.pk]), TYPED, headers={"HX-Request": "true"})

    (detail,) = json.loads(response["HX-Trigger"]).values()
    assert response.status_code == 403
    assert detail["message"] == "This page was open for too long. Nothing was changed. Try again."
    assert "csrftoken" in response.cookies


def test_htmx_without_a_session_gets_the_sign_in_page(browser, db):
    response = post(browser, **{"HX-Request": "true"})

    assert response.status_code == 302
    assert response["Location"].startswith(reverse("login"))


def test_the_text_of_another_site_is_not_shown(browser, db):
    browser.force_login(UserFactory())

    page = post(browser, Origin="https://evil.example").content.decode()

    assert "The form came from another address" in page
    assert "Greet guests" not in page


def test_an_old_sign_in_form_does_not_show_the_password(browser, db):
    fields = {"username": "ann", "password": "a-long-enough-password-7"}

    page = browser.post(reverse("login"), fields).content.decode()

    assert "Open the page again to sign in." in page
    assert fields["password"] not in page


@pytest.mark.parametrize("name", ["headers", "environment", "secret"])
def test_an_old_form_does_not_show_values_that_are_never_displayed(browser, db, name):
    page = browser.post(reverse("login"), {"description": "An old form.", name: "Authorization: Bearer a1b2c3"})

    assert "An old form." in page.content.decode()
    assert "a1b2c3" not in page.content.decode()


@pytest.mark.parametrize(
    ("path", "fields"), [("agents:create", TYPED), ("exchange:upload", {"message": "From the copy"})]
)
def test_the_form_of_another_user_is_refused_and_shown(client, db, path, fields):
    first, second = member("editor"), member("editor")
    client.force_login(second)

    refused = client.post(reverse(path), {**fields, "page_user": first.pk})
    accepted = client.post(reverse(path), {**fields, "page_user": second.pk})

    page = refused.content.decode()
    assert refused.status_code == 403
    assert "Another user has signed in" in page
    assert all(escape(text) in page for name, text in fields.items() if name in ("instructions", "message"))
    assert "Another user has signed in" not in accepted.content.decode()
