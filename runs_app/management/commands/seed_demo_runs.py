"""Creation of demo runs: some through the engine, and the past ones of an agent that was used for weeks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.db.models import F

from agents_app.models import Agent
from memory_app.demo import create_conversations
from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.engine.start.run import start_run
from runs_app.events.streams import wait_until_over
from runs_app.models import AgentRun, PendingCall, RunEvent
from runs_app.resolution import stored_agents
from runs_app.usage.demo import create_past_runs

DEMO_AGENT = "storyteller"  # its model needs no API key
AGENT_WITH_PAST = "support-triage"  # several of its versions were live in the last weeks
REMEMBERING_AGENT = "travel-assistant"
DECIDER = "maya"  # a manager of the team of the agents below
WAIT_BEFORE_DECISION = timedelta(minutes=25)

# User name, status of the agent, message.
DEMO_RUNS = [
    ("tom", "published", "a night train that is one passenger too full"),
    ("tom", "draft", "a night train that is one passenger too full"),
    ("maya", "published", 'use word-count {"text": "The last light on the coast went out at nine."}'),
    ("ada", "draft", "the proofreader of a night train"),
]


# Calls that wait for people or were decided. Of each: hours ago, user name, agent, message, and the decision of maya.
WAITING_RUNS: list[tuple[float, str, str, str, Decision | None]] = [
    (3, "tom", "refund-desk", 'issue-refund {"order": "A-1042", "amount": 180, "reason": "Arrived broken"}', None),
    (26, "tom", "delivery-planner", 'arrange-delivery {"order": "A-1043"}', None),
    (5, "tom", "service-desk", 'refund-desk: issue-refund {"order": "A-1051", "amount": 240}', None),
    (50, "tom", "refund-desk", 'issue-refund {"order": "A-1017", "amount": 130}', Decision(Verdict.APPROVE)),
    (
        74,
        "tom",
        "refund-desk",
        'issue-refund {"order": "A-1009", "amount": 400, "reason": "Two days late"}',
        Decision(Verdict.APPROVE, arguments={"order": "A-1009", "amount": 40, "reason": "Two days late"}),
    ),
    (
        98,
        "tom",
        "refund-desk",
        'issue-refund {"order": "A-0988", "amount": 900}',
        Decision(Verdict.DECLINE, reason="This order was refunded in May. Offer a voucher."),
    ),
    (
        122,
        "tom",
        "delivery-planner",
        'arrange-delivery {"order": "A-0990"}',
        Decision(Verdict.RESUME, resume_data={"day": "Friday", "note": "Ring twice"}),
    ),
]


class Command(BaseCommand):
    help = "Creates runs of a demo agent that needs no API key, unless there are runs already."

    def handle(self, *args: object, **options: object) -> None:
        users = get_user_model().objects.in_bulk([username for username, *_ in DEMO_RUNS], field_name="username")
        if AgentRun.objects.exists() or not users or not Agent.objects.filter(pk=DEMO_AGENT).exists():
            return
        agent_with_past = Agent.objects.filter(pk=AGENT_WITH_PAST).first()
        past = create_past_runs(agent_with_past, [*users.values()]) if agent_with_past else 0
        runs = [start_demo_run(users[name], status, text) for name, status, text in DEMO_RUNS if name in users]
        for run in runs:
            wait_until_over(run.pk)
        waiting = sum(create_waiting_run(users, *row) for row in WAITING_RUNS)
        if remembering := Agent.objects.filter(pk=REMEMBERING_AGENT).select_related("active_version").first():
            create_conversations(remembering, users)
        self.stderr.write(
            f"Created {len(runs)} runs of {DEMO_AGENT}, {past} past runs of {AGENT_WITH_PAST} and {waiting} runs that "
            "wait for people or were decided."
        )


def start_demo_run(user: User | None, status: str, text: str, agent_id: str = DEMO_AGENT) -> AgentRun:
    agent = stored_agents.get(agent_id, user=user, status=status)
    # Not durable: no worker runs yet that could execute it.
    return start_run(agent, user=user, messages=text, options={"durable": False})


def create_waiting_run(
    users: Mapping[str, User], hours_ago: float, username: str, agent_id: str, text: str, decision: Decision | None
) -> bool:
    """Create a run that waits for a person, or whose call maya decided. Return False without its agent or users."""
    if not {username, DECIDER} <= users.keys() or not Agent.objects.filter(pk=agent_id).exists():
        return False
    run = start_demo_run(users[username], "published", text, agent_id)
    wait_until_over(run.pk)
    if decision is not None:
        call = PendingCall.objects.get(run=run)
        move_back(run.pk, WAIT_BEFORE_DECISION)
        decide_pending_call(call, decision, users[DECIDER], PendingCall.Via.PAGE)
        wait_until_over(run.pk)
    move_back(run.pk, timedelta(hours=hours_ago))
    return True


def move_back(run_id: UUID, age: timedelta) -> None:
    """Move the times of a run, its child runs and their calls into the past."""
    runs = AgentRun.objects.filter(root_id=run_id)
    RunEvent.objects.filter(run__in=runs).update(created_at=F("created_at") - age)
    columns = ("created_at", "started_at", "finished_at", "suspended_at", "first_text_at", "expires_at")
    runs.update(**{column: F(column) - age for column in columns})
    calls = PendingCall.objects.filter(root_id=run_id)
    calls.update(**{column: F(column) - age for column in ("created_at", "decided_at", "expires_at")})
