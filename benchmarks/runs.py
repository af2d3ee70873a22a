"""CPU time of a run without its model: storing it and its events, executing it, and the response of the API.

    .venv/bin/python -m benchmarks.runs

Milliseconds of the whole process, on SQLite in a temporary data folder or on DATABASE_URL. The built-in model answers
without pauses. Its small CPU time is included.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
os.environ.setdefault("DATA_DIR", tempfile.mkdtemp(prefix="agentcms-benchmark-"))
os.environ.setdefault("RUNS_PER_USER", "1000")
os.environ.setdefault("RUNS_PER_AGENT", "1000")

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from access_app.models import ApiKey  # noqa: E402
from agents_app.models import Agent  # noqa: E402
from runs_app.models import AgentRun  # noqa: E402

RUNS = 200
CONCURRENT_RUNS = 10
DEMO = {"provider": "demo", "name": "echo", "delay": 0}


def main() -> None:
    call_command("migrate", verbosity=0)
    user, _ = get_user_model().objects.get_or_create(username="bench", is_superuser=True)
    client = Client(headers={"Authorization": f"Bearer {ApiKey.objects.issue(user)[1]}", "Host": "localhost"})
    Agent.objects.filter(pk__in=["plain", "tools"]).delete()
    Agent(id="plain", name="Plain", instructions="Answer.", model=DEMO).save()
    Agent(id="tools", name="Tools", instructions="Answer.", model=DEMO, tools=["word-count"]).save()
    print(f"{'':40}{'CPU per run':>14}{'runs per second':>16}")
    cases = (("answer of ten words", "plain", "Hello"), ("one tool call", "tools", "Use word-count"))
    for label, agent, text in cases:
        report(f"generate, {label}", partial(generate, client, agent, text), 1)
        report(f"stream, {label}", partial(stream, client, agent, text), 1)
    report(f"generate, {CONCURRENT_RUNS} concurrent", partial(generate, client, "plain", "Hello"), CONCURRENT_RUNS)
    failed = AgentRun.objects.exclude(status="succeeded")
    print(f"{AgentRun.objects.count()} runs, {failed.count()} failed")


def report(label: str, function: Callable[[], Any], threads: int) -> None:
    """Print the CPU time and the throughput of some calls, without the first one, which imports modules."""
    function()
    with ThreadPoolExecutor(threads) as executor:
        cpu, started = time.process_time(), time.perf_counter()
        list(executor.map(lambda _: function(), range(RUNS)))
        cpu, elapsed = time.process_time() - cpu, time.perf_counter() - started
    print(f"{label:40}{cpu / RUNS * 1000:11.1f} ms{RUNS / elapsed:16.1f}")


def generate(client: Client, agent: str, text: str) -> None:
    response = post(client, agent, "generate", text)
    assert response.status_code == 200, response.content


def stream(client: Client, agent: str, text: str) -> None:
    response: Any = post(client, agent, "stream", text)
    assert b"".join(response.streaming_content).endswith(b"data: [DONE]\n\n")


def post(client: Client, agent: str, action: str, text: str) -> Any:
    body = json.dumps({"messages": text})
    return client.post(f"/api/agents/{agent}/{action}", body, content_type="application/json")


if __name__ == "__main__":
    main()
