"""How long it takes to build an agent that runs from its version, and to take it from those that are kept.

    .venv/bin/python -m benchmarks.build

Milliseconds of CPU, on SQLite in a temporary data folder. Every provider is measured; none is asked.
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
    os.environ.setdefault(f"{name}_API_KEY", "measured-but-not-used")

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
    print(f"{'':32}{'median':>12}{'95 of 100':>12}")
    for model in MODELS:
        provider, _, name = model.partition("/")
        Agent(id=provider, model={"provider": provider, "name": name}, **FULL).save()
        given = stored_agents.get(provider, version_number=1)
        live = stored_agents.get(provider)
        report(f"{model}, built", 200, given.build)
        report(f"{model}, kept", 2000, live.build)


def report(what: str, times: int, act: Callable[[], Any]) -> None:
    """The first time, which imports what it needs, does not count."""
    act()
    took = []
    for _ in range(times):
        began = time.thread_time()
        act()
        took.append((time.thread_time() - began) * 1000)
    rest = statistics.quantiles(took, n=100)
    print(f"{what:32}{statistics.median(took):9.3f} ms{rest[94]:9.3f} ms")


if __name__ == "__main__":
    main()
