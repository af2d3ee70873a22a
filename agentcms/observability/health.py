"""The health probes `/healthz` and `/readyz`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection

from cachetools import TTLCache, cached
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from agentcms.celery import app
from jobs_app.models import Heartbeat
from jobs_app.runner import broker_circuit

log = logging.getLogger(__name__)

CACHE_SECONDS = 1.0  # /readyz is public, so frequent requests must be cheap
OK = "ok"
FAILING = "failing"


def alive(request: HttpRequest) -> HttpResponse:
    """Return 200: the process responds. Nothing else is checked."""
    return JsonResponse({"status": "alive"})


def ready(request: HttpRequest) -> HttpResponse:
    """Return 200 if all checks pass, else 503. Checks named in `?exclude=` do not affect the status."""
    checks = cached_checks()
    failing = failing_checks(checks, request.GET.getlist("exclude"))
    body = {"status": "not ready" if failing else "ready", "checks": checks}
    response = JsonResponse(body, status=503 if failing else 200)
    # A proxy must not go on answering with an earlier state.
    response.headers["Cache-Control"] = "no-store"
    if failing:
        response.headers["Retry-After"] = "5"
    return response


def failing_checks(checks: dict[str, str], excluded: Collection[str]) -> list[str]:
    """Return the names of the checks that fail and are not excluded."""
    return [name for name, status in checks.items() if status != OK and name not in excluded]


# The condition lets one thread run the checks while others wait for its results.
@cached(TTLCache(1, CACHE_SECONDS), condition=threading.Condition())
def cached_checks() -> dict[str, str]:
    """Return the results of all checks, which a process runs at most once a second."""
    return run_checks()


def run_checks() -> dict[str, str]:
    """Run all checks. Skip those that need the database if it is down: a probe has little time to wait."""
    results: dict[str, str] = {}
    for name, check in READINESS_CHECKS.items():
        is_skipped = name in DATABASE_CHECKS and results.get("database") != OK
        results[name] = FAILING if is_skipped else check_status(check)
    return results


def check_status(check: Callable[[], str]) -> str:
    """Return the status of a check. The probe is public, so an exception is logged and not quoted."""
    try:
        return check()
    except Exception:
        log.exception("A check of /readyz failed: %s.", check.__name__)
        return FAILING


def check_database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


def check_migrations() -> str:
    """Check for unapplied migrations until there are none; applied migrations stay applied."""
    if "migrations" not in _passed_once:
        executor = MigrationExecutor(connection)
        if plan := executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return f"{len(plan)} not applied"
        _passed_once.add("migrations")
    return OK


def check_broker() -> str:
    """Connect to the broker, unless a call just failed: a broker that hangs must not delay each probe."""
    if not broker_circuit.allows_call():
        return FAILING
    try:
        with app.connection_for_write() as connection_to_broker:
            connection_to_broker.connect()
    except Exception:
        broker_circuit.record_failure()
        raise
    broker_circuit.record_success()
    return OK


def check_beat() -> str:
    age = Heartbeat.age(Heartbeat.BEAT)
    if age is None:
        return "never seen"
    return OK if age <= Heartbeat.MAX_AGE else f"last seen {int(age.total_seconds())} s ago"


READINESS_CHECKS: dict[str, Callable[[], str]] = {
    "database": check_database,
    "migrations": check_migrations,
    "broker": check_broker,
    "beat": check_beat,
}
DATABASE_CHECKS = {"migrations", "beat"}
_passed_once: set[str] = set()
