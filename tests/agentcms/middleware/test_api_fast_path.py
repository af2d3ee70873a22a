"""API requests without a cookie, which skip the middleware of pages."""

import pytest
from django.test import Client

from tests.api_client import AGENTS, Caller
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

COMMON = (
    "Content-Length",
    "Content-Security-Policy",
    "Content-Type",
    "Cross-Origin-Opener-Policy",
    "Referrer-Policy",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-Request-ID",
)


def test_a_request_with_a_key_loads_no_session(api):
    answer = api.get(AGENTS)

    assert not hasattr(answer.wsgi_request, "session")


def test_a_request_with_a_cookie_takes_the_full_middleware():
    client = Client()
    client.force_login(UserFactory(is_superuser=True))

    answer = client.get(AGENTS)

    assert answer.status_code == 200
    assert hasattr(answer.wsgi_request, "session")


@pytest.mark.parametrize("header", COMMON)
def test_both_paths_send_the_same_headers(api, header):
    client = Client()
    client.force_login(UserFactory(is_superuser=True))

    assert api.get(AGENTS)[header]
    if header != "X-Request-ID":
        assert api.get(AGENTS)[header] == client.get(AGENTS)[header]


def test_an_unknown_host_is_refused(api):
    answer = api.get(AGENTS, Host="elsewhere.example")

    assert answer.status_code == 400
    assert answer.body["code"] == "bad_host"


def test_http_redirects_to_https_where_it_is_required(api, settings):
    settings.SECURE_SSL_REDIRECT = True

    answer = Client(headers={"Authorization": api.authorization}).get(AGENTS)

    assert answer.status_code == 301


def test_a_request_without_credentials_is_401():
    assert Caller().get(AGENTS).status_code == 401


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html, application/json;q=0.9", "application/*"])
def test_an_accept_header_that_includes_json_is_served(api, accept):
    assert api.get(AGENTS, Accept=accept).status_code == 200


def test_an_accept_header_without_json_is_406(api):
    assert api.get(AGENTS, Accept="text/html").status_code == 406
