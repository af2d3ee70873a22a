"""The CPU that compiled queries and the short way of API requests through the middleware save.

    .venv/bin/python -m benchmarks.fast_paths

Milliseconds of CPU in Python, on SQLite in a temporary data folder: the lower quartile of alternating rounds. The
database takes part of it, because SQLite runs inside the process.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
os.environ.setdefault("DATA_DIR", tempfile.mkdtemp(prefix="agentcms-benchmark-"))
os.environ.setdefault("ALLOWED_HOSTS", "testserver")

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from access_app.models import ApiKey, keys_with_prefix  # noqa: E402
from agentcms.db.statements.compiled_query import CompiledQuery  # noqa: E402
from agents_app.api.list_query import agent_keys  # noqa: E402
from agents_app.api.representation import agent_row, agent_total  # noqa: E402
from agents_app.models import Agent  # noqa: E402
from versions_app.api.representation_cache import pointers_with_total, version_keys  # noqa: E402

ROUNDS, CALLS = 30, 50
AGENT = "concierge"
FAST_PATH = "agentcms.middleware.api_fast_path.ApiFastPathMiddleware"

Act = Callable[[], Any]


def compare(name: str, fast: Act, slow: Act) -> None:
    """Print the CPU of one call of each."""
    seconds: dict[Act, list[float]] = {fast: [], slow: []}
    for number in range(ROUNDS):
        for act in (fast, slow) if number % 2 else (slow, fast):
            started_at = time.process_time()
            for _ in range(CALLS):
                act()
            seconds[act].append((time.process_time() - started_at) / CALLS)
    quartiles = [statistics.quantiles(values)[0] * 1000 for values in seconds.values()]
    print(f"{name:24} {quartiles[0]:7.3f} instead of {quartiles[1]:7.3f} ms")


def compare_query(query: CompiledQuery[..., Any], *options: Any, **values: Any) -> None:
    compare(query.build.__name__, lambda: query(*options, **values), lambda: list(query.build(*options, **values)))


def compare_middleware(token: str) -> None:
    """Compare reading an agent with the fast path and without it."""
    middleware = settings.MIDDLEWARE
    clients = []
    for names in (middleware, [name for name in middleware if name != FAST_PATH]):
        settings.MIDDLEWARE = names
        client = Client(headers={"Authorization": f"Bearer {token}"})
        client.get("/healthz")  # loads the middleware
        clients.append(client)
    settings.MIDDLEWARE = middleware
    fast, slow = clients
    path = f"/api/stored/agents/{AGENT}"
    compare("read an agent over HTTP", lambda: fast.get(path), lambda: slow.get(path))


def main() -> None:
    call_command("migrate", verbosity=0)
    user = get_user_model().objects.create_superuser("benchmark")
    key, token = ApiKey.objects.issue(user)
    Agent(id=AGENT, name="Concierge", model={"provider": "demo", "name": "echo"}).save()
    window = slice(0, 20)
    compare_query(keys_with_prefix, prefix=key.prefix)
    compare_query(agent_row, "active_version", user=user, agent_id=AGENT)
    compare_query(agent_keys, "is_live", "-created_at", user=user, window=window)
    compare_query(agent_total, user=user)
    compare_query(pointers_with_total, user=user, agent_id=AGENT)
    compare_query(version_keys, "-version_number", agent_id=AGENT, window=window)
    compare_middleware(token)


if __name__ == "__main__":
    main()
