"""Secrets of API keys, which appear in no log, error or later page."""

import logging
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from access_app.models import ApiKey
from agentcms.logs import JSONFormatter, TextFormatter
from tests.api_client import AGENTS, Caller
from tests.factories import UserFactory
from tests.served_accounts import serving_with_accounts

TOKEN = re.compile(r"acms_[0-9a-f]{8}_[\w-]{43}")


@pytest.fixture
def logged(caplog):
    """Return a function that reads all log records, unformatted and in both formats."""
    caplog.set_level(logging.DEBUG)

    def read():
        return "\n".join(
            text
            for record in caplog.records
            for text in (
                record.getMessage(),
                str(record.exc_info),
                TextFormatter().format(record),
                JSONFormatter().format(record),
            )
        )

    return read


def assert_hidden(token, *texts):
    """Assert that the texts contain neither token nor secret nor hash."""
    stored = set(ApiKey.objects.values_list("secret_hash", flat=True))
    for text in texts:
        assert token not in text
        assert token[14:] not in text
        assert not any(value in text for value in stored)


@pytest.fixture
def staff(db):
    client, user = Client(), UserFactory(is_staff=True, is_superuser=True)
    client.force_login(user)
    return client, user


def issued_on_a_page(client, user):
    return client.post(reverse("account:keys"), {"name": "Export", "role": "", "expires_at": ""})


def issued_in_the_admin(client, user):
    return client.post(
        reverse("admin:access_app_apikey_add"), {"user": user.pk, "name": "ci", "role": ""}, follow=True
    )


@pytest.mark.parametrize("issue", [issued_on_a_page, issued_in_the_admin])
def test_issuing_using_and_refusing_a_key_logs_no_secret(logged, staff, settings, issue):
    settings.LOG_REQUESTS = True
    token = TOKEN.search(issue(*staff).content.decode())[0]
    caller = Caller(token)

    used = caller.post(AGENTS, {"id": "a", "name": token, "instructions": 7}, Idempotency_Key=token)
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(days=1))
    expired = caller.get(AGENTS)
    ApiKey.objects.update(expires_at=None, revoked_at=timezone.now())
    revoked = caller.get(f"{AGENTS}?search={token[:20]}")
    wrong = Caller(f"{token}x").get(AGENTS)

    assert (used.status_code, expired.status_code, revoked.status_code, wrong.status_code) == (400, 401, 401, 401)
    assert "agentcms.requests" in logged()
    assert_hidden(token, logged(), *(response.content.decode() for response in (used, expired, revoked, wrong)))


def test_no_page_displays_a_secret_again(staff):
    client, user = staff
    token = TOKEN.search(issued_in_the_admin(client, user).content.decode())[0]
    key = ApiKey.objects.get()

    pages = [
        reverse("account:keys"),
        reverse("admin:index"),
        reverse("admin:access_app_apikey_changelist"),
        reverse("admin:access_app_apikey_change", args=[key.pk]),
        reverse("admin:access_app_apikey_history", args=[key.pk]),
        reverse("admin:auth_user_change", args=[user.pk]),
        "/metrics",
    ]

    for page in pages:
        answer = client.get(page)
        assert answer.status_code == 200, page
        assert_hidden(token, answer.content.decode())


def test_a_running_copy_logs_no_secret_at_level_debug(tmp_path):
    environment = {"LOG_LEVEL": "debug", "LOG_REQUESTS": "yes", "WEB_WORKERS": "1"}
    with serving_with_accounts(tmp_path / "var", **environment) as copy:
        token = copy.keys["root"]
        with copy.client(token) as client:
            assert client.get(AGENTS).status_code == 200
            assert client.post("/api/stored/agent-export", headers={"Idempotency-Key": "k"}).status_code == 202
            assert client.post(AGENTS, content=token).status_code == 415
        with copy.client(f"{token}x") as client:
            assert client.get(AGENTS).status_code == 401
        log = copy.log_text()

    assert "agentcms.requests" in log
    assert token[14:] not in log
