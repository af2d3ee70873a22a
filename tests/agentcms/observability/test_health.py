"""The liveness and readiness probes."""

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
def cleared_readiness_cache(monkeypatch):
    health.cached_checks.cache_clear()
    monkeypatch.setattr(health, "_passed_once", set())


@pytest.fixture
def with_heartbeat():
    Heartbeat.record(Heartbeat.BEAT)


def ready(client, query=""):
    answer = client.get(f"/readyz{query}")
    return answer.status_code, answer.json()["checks"]


def test_liveness_takes_no_query(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = client.get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


def test_probes_ignore_allowed_hosts_and_https(client, settings, with_heartbeat):
    settings.ALLOWED_HOSTS = ["cms.example.org"]
    settings.SECURE_SSL_REDIRECT = True

    for path in ("/healthz", "/readyz"):
        assert client.get(path, headers={"host": "10.1.2.3:8000"}).status_code == 200


def test_readiness_is_ok_where_every_check_passes(client, with_heartbeat):
    assert ready(client) == (200, {"database": "ok", "migrations": "ok", "broker": "ok", "beat": "ok"})


def test_readiness_fails_without_a_heartbeat(client):
    status, checks = ready(client)

    assert (status, checks["beat"]) == (503, "never seen")


def test_readiness_fails_with_an_old_heartbeat(client, with_heartbeat):
    Heartbeat.objects.update(at=timezone.now() - timedelta(hours=1))

    status, checks = ready(client)

    assert status == 503
    assert re.match(r"last seen 36\d\d s ago", checks["beat"])


def test_readiness_for_load_balancers_checks_only_what_serves_requests(client):
    assert ready(client, "?exclude=beat")[0] == 200


def test_readiness_names_an_unavailable_broker(client, with_heartbeat):
    with broker("redis://127.0.0.1:1/0"):
        status, checks = ready(client)

    assert (status, checks["broker"]) == (503, "failing")


def test_readiness_names_unapplied_migrations(client, with_heartbeat):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'jobs_app' AND name = '0007_job_traceparent'")

    status, checks = ready(client)

    assert (status, checks["migrations"]) == (503, "1 not applied")


def test_readiness_is_cached(client, with_heartbeat, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(health, "CACHE_SECONDS", 60)
    client.get("/readyz")

    with django_assert_num_queries(0):
        client.get("/readyz")


def test_the_scheduler_writes_its_heartbeat(monkeypatch):
    monkeypatch.setattr(scheduler.connection, "close", lambda: None)

    scheduler.write_scheduler_heartbeat()

    assert Heartbeat.age(Heartbeat.BEAT) < timedelta(seconds=5)


def test_a_heartbeat_of_a_later_time_is_as_old_as_an_earlier_one(client, with_heartbeat):
    """The clock of the database was set back."""
    Heartbeat.objects.update(at=timezone.now() + timedelta(hours=1))

    status, checks = ready(client)

    assert status == 503
    assert checks["beat"] != "ok"


def test_readiness_waits_once_for_an_unavailable_database(client, with_heartbeat):
    tried = []

    def away(execute, *statement):
        tried.append(statement[0])
        raise OperationalError("away")

    with connection.execute_wrapper(away):
        status, checks = ready(client)

    assert status == 503
    assert checks == {"database": "failing", "migrations": "failing", "broker": "ok", "beat": "failing"}
    assert len(tried) == 1
