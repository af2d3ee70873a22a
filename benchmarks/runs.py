"""What a run costs beside its model: the row, its events, the thread it runs on, the answer over the API.

    .venv/bin/python -m benchmarks.runs

Milliseconds of CPU of the whole process, on SQLite in a temporary data folder or on DATABASE_URL. The built-in model
answers without a pause between its words, so that what it costs itself is small; it counts all the same.
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
AT_ONCE = 10
DEMO = {"provider": "demo", "name": "echo", "delay": 0}


def main() -> None:
    call_command("migrate", verbosity=0)
    user, _ = get_user_model().objects.get_or_create(username="bench", is_superuser=True)
    client = Client(headers={"Authorization": f"Bearer {ApiKey.objects.issue(user)[1]}", "Host": "localhost"})
    Agent.objects.filter(pk__in=["plain", "tools"]).delete()
    Agent(id="plain", name="Plain", instructions="Answer.", model=DEMO).save()
    Agent(id="tools", name="Tools", instructions="Answer.", model=DEMO, tools=["word-count"]).save()
    print(f"{'':40}{'CPU of a run':>14}{'runs a second':>16}")
    for what, agent, text in (
        ("an answer of ten words", "plain", "Hello"),
        ("with one tool", "tools", "Use word-count"),
    ):
        report(f"generate, {what}", partial(generate, client, agent, text), 1)
        report(f"stream, {what}", partial(stream, client, agent, text), 1)
    report(f"generate, {AT_ONCE} at once", partial(generate, client, "plain", "Hello"), AT_ONCE)
    print(f"{AgentRun.objects.count()} runs, {AgentRun.objects.exclude(status='succeeded').count()} that failed")


def report(what: str, act: Callable[[], Any], at_once: int) -> None:
    """The first time, which imports what it needs, does not count."""
    act()
    with ThreadPoolExecutor(at_once) as threads:
        cpu, began = time.process_time(), time.perf_counter()
        list(threads.map(lambda _: act(), range(RUNS)))
        cpu, took = time.process_time() - cpu, time.perf_counter() - began
    print(f"{what:40}{cpu / RUNS * 1000:11.1f} ms{RUNS / took:16.1f}")


def generate(client: Client, agent: str, text: str) -> None:
    answer = ask(client, agent, "generate", text)
    assert answer.status_code == 200, answer.content


def stream(client: Client, agent: str, text: str) -> None:
    answer: Any = ask(client, agent, "stream", text)
    assert b"".join(answer.streaming_content).endswith(b"data: [DONE]\n\n")


def ask(client: Client, agent: str, act: str, text: str) -> Any:
    body = json.dumps({"messages": text})
    return client.post(f"/api/agents/{agent}/{act}", body, content_type="application/json")


if __name__ == "__main__":
    main()
