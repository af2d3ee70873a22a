"""Alive, and ready: two probes that answer whatever else is wrong."""

import re
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from agentcms.observability import health
from jobs_app import scheduler
from jobs_app.models import Heartbeat
from tests.broker import broker

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    health.cached_checks.cache_clear()
    monkeypatch.setattr(health, "_passed_once", set())


@pytest.fixture
def beating():
    Heartbeat.note(Heartbeat.BEAT)


def ready(client, query=""):
    answer = client.get(f"/readyz{query}")
    return answer.status_code, answer.json()["checks"]


def test_it_is_alive_without_asking_anybody(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = client.get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


def test_a_probe_needs_no_host_name_and_no_certificate(client, settings, beating):
    settings.ALLOWED_HOSTS = ["cms.example.org"]
    settings.SECURE_SSL_REDIRECT = True

    for path in ("/healthz", "/readyz"):
        assert client.get(path, headers={"host": "10.1.2.3:8000"}).status_code == 200


def test_it_is_ready_where_everything_works(client, beating):
    assert ready(client) == (200, {"database": "ok", "migrations": "ok", "broker": "ok", "beat": "ok"})


def test_a_beat_that_was_never_seen_is_not_ready(client):
    status, checks = ready(client)

    assert (status, checks["beat"]) == (503, "never seen")


def test_a_beat_that_stopped_an_hour_ago_is_late(client, beating):
    Heartbeat.objects.update(at=timezone.now() - timedelta(hours=1))

    status, checks = ready(client)

    assert status == 503
    assert re.match(r"last seen 36\d\d s ago", checks["beat"])


def test_a_load_balancer_may_leave_out_what_serves_no_request(client):
    assert ready(client, "?exclude=beat")[0] == 200


def test_a_broker_that_is_away_is_said(client, beating):
    with broker("redis://127.0.0.1:1/0"):
        status, checks = ready(client)

    assert (status, checks["broker"]) == (503, "failing")


def test_a_migration_that_is_not_applied_is_said(client, beating):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'jobs_app' AND name = '0002_heartbeat'")

    status, checks = ready(client)

    assert (status, checks["migrations"]) == (503, "1 not applied")


def test_asking_often_is_cheap(client, beating, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(health, "CACHE_SECONDS", 60)
    client.get("/readyz")

    with django_assert_num_queries(0):
        client.get("/readyz")


def test_beat_notes_that_it_is_alive(monkeypatch):
    monkeypatch.setattr(scheduler.connection, "close", lambda: None)

    scheduler.write_heartbeat()

    assert Heartbeat.age(Heartbeat.BEAT) < timedelta(seconds=5)


def test_a_database_that_is_away_is_waited_for_once(client, beating):
    tried = []

    def away(execute, *statement):
        tried.append(statement[0])
        raise OperationalError("away")

    with connection.execute_wrapper(away):
        status, checks = ready(client)

    assert status == 503
    assert checks == {"database": "failing", "migrations": "failing", "broker": "ok", "beat": "failing"}
    assert len(tried) == 1
