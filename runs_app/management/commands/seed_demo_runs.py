"""Creation of demo runs: some through the engine, and the past ones of an agent that was used for weeks."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand

from agents_app.models import Agent
from runs_app.engine.start import start_run
from runs_app.events.streams import wait_until_over
from runs_app.models import AgentRun
from runs_app.resolution import stored_agents
from runs_app.usage.demo import create_past_runs

DEMO_AGENT = "storyteller"  # its model needs no API key
AGENT_WITH_PAST = "support-triage"  # several of its versions were live in the last weeks

# User name, status of the agent, message.
DEMO_RUNS = [
    ("tom", "published", "a night train that is one passenger too full"),
    ("tom", "draft", "a night train that is one passenger too full"),
    ("maya", "published", 'use word-count {"text": "The last light on the coast went out at nine."}'),
    ("ada", "draft", "the proofreader of a night train"),
]


class Command(BaseCommand):
    help = "Creates runs of a demo agent that needs no API key, unless there are runs already."

    def handle(self, *args: Any, **options: Any) -> None:
        users = get_user_model().objects.in_bulk([username for username, *_ in DEMO_RUNS], field_name="username")
        if AgentRun.objects.exists() or not users or not Agent.objects.filter(pk=DEMO_AGENT).exists():
            return
        agent_with_past = Agent.objects.filter(pk=AGENT_WITH_PAST).first()
        past = create_past_runs(agent_with_past, [*users.values()]) if agent_with_past else 0
        runs = [start_demo_run(users[name], status, text) for name, status, text in DEMO_RUNS if name in users]
        for run in runs:
            wait_until_over(run.pk)
        self.stderr.write(f"Created {len(runs)} runs of {DEMO_AGENT} and {past} past runs of {AGENT_WITH_PAST}.")


def start_demo_run(user: User | None, status: str, text: str) -> AgentRun:
    agent = stored_agents.get(DEMO_AGENT, user=user, status=status)
    # Not durable: no worker runs yet that could execute it.
    return start_run(agent, user=user, messages=text, options={"durable": False})
