"""Sessions, of which the database has only hashes."""

import asyncio
from importlib import import_module
from io import BytesIO

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore as PlainStore
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from access_app.authentication import is_known_sender
from access_app.sessions import SessionStore
from tests.factories import PASSWORD, member

pytestmark = pytest.mark.django_db

migration = import_module("access_app.migrations.0005_hash_session_keys")


@pytest.fixture
def client():
    """Return a client that signed in on the page."""
    member("editor", username="ann")
    client = Client()
    client.post(reverse("login"), {"username": "ann", "password": PASSWORD})
    return client


def status_with(key):
    """Return the status of the start page with a session cookie."""
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    return client.get("/").status_code


def test_the_stored_key_signs_nobody_in(client):
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    row = Session.objects.get()

    assert client.get("/").status_code == 200
    assert status_with(key) == 200
    assert key not in (row.session_key, row.session_data)
    assert status_with(row.session_key) == 302


def test_signing_out_deletes_the_session(client):
    key = client.cookies[settings.SESSION_COOKIE_NAME].value

    client.post(reverse("logout"))

    assert Session.objects.count() == 0
    assert status_with(key) == 302


def test_an_expired_session_signs_nobody_in(client):
    Session.objects.update(expire_date=timezone.now())

    assert client.get("/").status_code == 302


def test_a_key_that_a_browser_made_up_becomes_no_session():
    session = SessionStore("x" * 32)

    session["name"] = "ann"
    session.save()

    assert session.session_key != "x" * 32
    assert SessionStore(session.session_key)["name"] == "ann"


def test_the_migration_leaves_users_signed_in():
    plain = PlainStore()
    plain["name"] = "ann"
    plain.create()

    migration.hash_keys(apps, None)
    migration.hash_keys(apps, None)  # an interrupted migration is repeated

    assert not Session.objects.filter(session_key=plain.session_key).exists()
    assert SessionStore(plain.session_key)["name"] == "ann"


def test_its_reverse_signs_everybody_out(client):
    migration.delete_sessions(apps, None)

    assert client.get("/").status_code == 302


@pytest.mark.django_db(transaction=True)
def test_the_asynchronous_methods_store_hashes_too():
    async def use() -> str:
        session = SessionStore()
        await session.aset("name", "ann")
        await session.asave()
        again = SessionStore(session.session_key)
        assert await again.aget("name") == "ann"
        assert await session.aexists(session.session_key)
        await session.acycle_key()
        assert not await session.aexists(again.session_key)
        return session.session_key

    key = asyncio.run(use())

    assert Session.objects.get().session_key not in (key, None)


def test_a_slow_upload_may_come_from_a_browser_that_is_signed_in(client):
    """The server asks before it reads a slow body, and must find the session as the pages do."""
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    upload = {"REQUEST_METHOD": "POST", "PATH_INFO": reverse("exchange:upload"), "HTTP_HOST": "127.0.0.1"}

    def is_known_with(cookie):
        cookies = f"{settings.SESSION_COOKIE_NAME}={cookie}"
        return is_known_sender({**upload, "wsgi.input": BytesIO(), "HTTP_COOKIE": cookies})

    assert is_known_with(key)
    assert not is_known_with(Session.objects.get().session_key)
    assert not is_known_with("x" * 32)
