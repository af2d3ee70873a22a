"""Let the demo agents answer a few questions, through the engine that answers everybody."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand

from agents_app.models import Agent
from runs_app.engine.start import start_run
from runs_app.events.streams import wait_until_finished
from runs_app.models import AgentRun
from runs_app.resolution import stored_agents

DEMO_AGENT = "storyteller"  # it needs no key

# Who asks, of which status, and what.
QUESTIONS = [
    ("tom", "published", "a night train that is one passenger too full"),
    ("tom", "draft", "a night train that is one passenger too full"),
    ("maya", "published", 'use word-count {"text": "The last light on the coast went out at nine."}'),
    ("ada", "draft", "the proofreader of a night train"),
]


class Command(BaseCommand):
    help = "Asks the demo agent that needs no key a few questions, unless there is a run already."

    def handle(self, *args: Any, **options: Any) -> None:
        people = get_user_model().objects.in_bulk([who for who, *_ in QUESTIONS], field_name="username")
        if AgentRun.objects.exists() or not people or not Agent.objects.filter(pk=DEMO_AGENT).exists():
            return
        runs = [start_demo_run(people[who], status, text) for who, status, text in QUESTIONS if who in people]
        for run in runs:
            wait_until_finished(run.pk)
        self.stderr.write(f"Asked {DEMO_AGENT} {len(runs)} questions.")


def start_demo_run(user: Any, status: str, text: str) -> AgentRun:
    return start_run(stored_agents.get(DEMO_AGENT, user=user, status=status), user=user, messages=text)
