"""The CPU time to build a runnable agent from a version, and to get it from the cache.

    .venv/bin/python -m benchmarks.build

Milliseconds on SQLite in a temporary data folder. Agents of all built-in providers are built; no provider is called.
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
for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "MISTRAL"):
    os.environ.setdefault(f"{name}_API_KEY", "unused")

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402

from agents_app.models import Agent  # noqa: E402
from runs_app.resolution import stored_agents  # noqa: E402

MODELS = (
    "demo/echo",
    "openai/gpt-6.1-sol",
    "anthropic/claude-sonnet-5-5",
    "google/gemini-4-argon",
    "mistral/mistral-large-latest",
)

FULL: dict[str, Any] = {
    "name": "Concierge",
    "instructions": "Greet the guest and answer briefly. " * 200,
    "tools": ["word-count", "calculator", "current-time", "text-search", "extract-links", "send-notice"],
    "workflows": ["summarise-thread", "triage-ticket"],
    "agents": ["proofreader"],
    "integration_tools": ["text_case_upper", "text_lines_reverse"],
    "memory": "last-messages",
    "input_processors": [{"key": "trim-whitespace"}],
    "output_processors": [{"key": "mask-email"}],
    "scorers": {"answer-length": {}},
    "default_options": {"temperature": 0.2, "maxSteps": 5},
}


def main() -> None:
    call_command("migrate", verbosity=0)
    print(f"{'':32}{'median':>12}{'p95':>12}")
    for model in MODELS:
        provider, _, name = model.partition("/")
        Agent(id=provider, model={"provider": provider, "name": name}, **FULL).save()
        from_version = stored_agents.get(provider, version_number=1)
        cached = stored_agents.get(provider)
        report(f"{model}, built", 200, from_version.build)
        report(f"{model}, cached", 2000, cached.build)


def report(label: str, times: int, function: Callable[[], Any]) -> None:
    """Print the median and the 95th percentile of some calls, without the first one, which imports modules."""
    function()
    durations = []
    for _ in range(times):
        started = time.thread_time()
        function()
        durations.append((time.thread_time() - started) * 1000)
    percentiles = statistics.quantiles(durations, n=100)
    print(f"{label:32}{statistics.median(durations):9.3f} ms{percentiles[94]:9.3f} ms")


if __name__ == "__main__":
    main()
