"""Whether this copy is alive, and whether it is ready: for load balancers, containers and whoever is on call."""

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

log = logging.getLogger(__name__)

CACHE_SECONDS = 1.0  # seconds for which an answer is given again: anybody may ask, and asking must stay cheap
OK = "ok"
FAILING = "failing"


def alive(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return JsonResponse({"status": "alive"})


def ready(request: HttpRequest) -> HttpResponse:
    """200 where everything works, else 503 with what does not; `?exclude=beat` leaves a check out of the verdict."""
    checks = cached_checks()
    failing = failing_checks(checks, request.GET.getlist("exclude"))
    body = {"status": "not ready" if failing else "ready", "checks": checks}
    response = JsonResponse(body, status=503 if failing else 200)
    response.headers["Cache-Control"] = "no-store"
    if failing:
        response.headers["Retry-After"] = "5"
    return response


def failing_checks(checks: dict[str, str], excused: Collection[str]) -> list[str]:
    return [name for name, said in checks.items() if said != OK and name not in excused]


# The condition lets one thread run the checks while others wait for its results.
@cached(TTLCache(1, CACHE_SECONDS), condition=threading.Condition())
def cached_checks() -> dict[str, str]:
    """Return the results of all checks, which a process runs at most once a second."""
    return run_checks()


def run_checks() -> dict[str, str]:
    """What every check says. A database that is away is waited for once: a probe has not much time."""
    found: dict[str, str] = {}
    for name, check in CHECKS.items():
        is_hopeless = name in DATABASE_CHECKS and found.get("database") != OK
        found[name] = FAILING if is_hopeless else check_status(check)
    return found


def check_status(check: Callable[[], str]) -> str:
    """What a check says; one that raises says no more than that, because anybody may ask."""
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
    """Applied ones stay applied, so that a good answer is remembered."""
    if "migrations" not in _passed_once:
        executor = MigrationExecutor(connection)
        if plan := executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return f"{len(plan)} not applied"
        _passed_once.add("migrations")
    return OK


def check_broker() -> str:
    with app.connection_for_write() as line:
        line.ensure_connection(max_retries=1, interval_start=0.1, timeout=2)
    return OK


def check_beat() -> str:
    age = Heartbeat.age(Heartbeat.BEAT)
    if age is None:
        return "never seen"
    return OK if age <= Heartbeat.LATE else f"last seen {int(age.total_seconds())} s ago"


CHECKS: dict[str, Callable[[], str]] = {
    "database": check_database,
    "migrations": check_migrations,
    "broker": check_broker,
    "beat": check_beat,
}
DATABASE_CHECKS = {"migrations", "beat"}
_passed_once: set[str] = set()
