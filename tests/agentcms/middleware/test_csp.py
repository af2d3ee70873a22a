"""The Content-Security-Policy of responses."""

import re

import pytest
from django.http import HttpResponse
from django.test import Client

from agentcms.middleware.csp import SHORT_POLICY, ContentSecurityPolicyMiddleware
from tests.factories import UserFactory
from tests.page_client import browser

pytestmark = pytest.mark.django_db


def policy(answer):
    return dict(part.split(" ", 1) for part in answer["Content-Security-Policy"].split("; "))


@pytest.mark.parametrize("path", ["/sign-in", "/", "/new-agent", "/account/keys", "/no-such-page", "/api/docs"])
def test_scripts_need_a_nonce(path):
    sent = policy(browser(UserFactory(is_superuser=True, is_staff=True)).get(path))

    assert re.fullmatch(r"'nonce-[\w-]{20,}'", sent["script-src"])
    assert sent["frame-ancestors"] == sent["default-src"] == sent["base-uri"] == "'none'"
    assert "unsafe" not in str(sent)


def test_json_responses_allow_no_scripts():
    sent = policy(browser(UserFactory(is_superuser=True)).get("/api/stored/agents"))

    assert sent == {"default-src": "'none'", "frame-ancestors": "'none'"}


@pytest.mark.parametrize("content_type", ['text/css; charset="utf-8"', "text/javascript", "font/woff2"])
def test_styles_scripts_and_fonts_have_the_short_policy(rf, content_type):
    middleware = ContentSecurityPolicyMiddleware(lambda request: HttpResponse("", content_type=content_type))

    assert middleware(rf.get("/static/file"))["Content-Security-Policy"] == SHORT_POLICY


def test_each_response_has_its_own_nonce(client):
    first, second = client.get("/sign-in"), client.get("/sign-in")

    nonce = policy(first)["script-src"].removeprefix("'nonce-").removesuffix("'")
    assert nonce not in policy(second)["script-src"]
    scripts = re.findall(r"<script[^>]*>", first.content.decode())
    assert scripts
    assert all(f'nonce="{nonce}"' in script for script in scripts)


@pytest.mark.parametrize("path", ["/", "/new-agent", "/account/keys", "/team", "/sign-in", "/runs"])
def test_no_page_has_inline_handlers_or_styles(path):
    html = browser(UserFactory(is_superuser=True)).get(path).content.decode()

    assert not re.search(r"<[^>]+\s(on\w+|style|hx-on\S*)=", html)
    assert not re.search(r"<script(?![^>]*\s(?:src=|type=\"application/json\"))", html)


def test_the_admin_may_load_its_own_scripts():
    answer = Client().get("/admin/", follow=False)

    assert "'self'" in policy(answer)["script-src"]
    assert policy(answer)["frame-ancestors"] == "'none'"
