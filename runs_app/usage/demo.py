"""Past runs of a demo agent, so that its use per day has something to show. They were never sent to a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agentcms.db.column_values import ColumnValues
from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent
from runs_app.models import AgentRun, RunEvent, Score
from versions_app.models import AgentVersion

DAYS = 28
RUNS_PER_DAY = (4, 11)
TOKEN_PRICE = Decimal("0.000004")  # US dollars
DEMO_ERROR = "OpenAI did not answer within 60 seconds. Try again."

# A message and the answer to it.
CONVERSATIONS = [
    ("My parcel has been at the depot for six days.", "Queue: delivery. Urgency: high. Reason: overdue by four days."),
    ("How do I change the address on my invoice?", "Queue: billing. Urgency: low. Reason: a change of master data."),
    ("The lamp arrived with a broken switch.", "Queue: returns. Urgency: normal. Reason: damaged on arrival."),
    ("I was charged twice for order 40211.", "Queue: billing. Urgency: high. Reason: a double charge."),
    ("Do you ship to Iceland?", "Queue: sales. Urgency: low. Reason: a question before an order."),
]


def create_past_runs(agent: Agent, users: Sequence[User]) -> int:
    """Create finished runs of the last weeks by the versions that were live then. Return their number."""
    random = Random(14)  # noqa: S311  the same figures at every start
    versions = list(live_periods(agent))
    now = timezone.now()
    count = 0
    with transaction.atomic():
        for days_ago in range(DAYS, 0, -1):
            for _ in range(random.randint(*RUNS_PER_DAY)):
                at = now - timedelta(days=days_ago - random.random())
                version = next((version for since, version in versions if since <= at), None)
                if version is not None:
                    create_past_run(agent, version, random.choice(users), at, random)
                    count += 1
    return count


def live_periods(agent: Agent) -> Iterator[tuple[datetime, AgentVersion]]:
    """Yield since when which version was live, newest first."""
    versions = {version.pk: version for version in agent.versions.all()}
    for activation in agent.activations.all():
        if activation.to_version_id in versions:
            yield activation.created_at, versions[activation.to_version_id]


def create_past_run(agent: Agent, version: AgentVersion, user: User, at: datetime, random: Random) -> None:
    question, answer = random.choice(CONVERSATIONS)
    failed = random.random() < 0.04 + 0.2 * (version.version_number % 7 == 0)
    run = AgentRun(
        agent=agent,
        agent_key=agent.pk,
        owner_id=agent.owner_id,
        agent_owner_id=agent.owner_id,
        version_id=version.pk,
        version_number=version.version_number,
        requested_by=user,
        requested_by_name=user.get_username(),
        input={"messages": [{"role": "user", "content": [{"type": "text", "text": question}]}], "options": {}},
        created_at=at,
        started_at=at,
        finished_at=at + timedelta(seconds=60 if failed else random.lognormvariate(0.6, 0.4)),
        **(failed_columns() if failed else {"status": AgentRun.Status.SUCCEEDED, "output": answer}),
        **usage_columns(random.randint(420, 900), 0 if failed else random.randint(20, 60)),
    )
    run.configuration = version.snapshot
    run.save(force_insert=True)
    if not failed:
        add_answer(run, answer, at)
        Score.objects.create(run=run, scorer="tone", score=round(random.uniform(0.7, 1.0), 2), created_at=at)


def failed_columns() -> ColumnValues:
    return {"status": AgentRun.Status.FAILED, "error": DEMO_ERROR, "finish_reason": "error"}


def usage_columns(input_tokens: int, output_tokens: int) -> ColumnValues:
    total = input_tokens + output_tokens
    usage = {"inputTokens": input_tokens, "outputTokens": output_tokens, "totalTokens": total}
    return {"usage": usage, "cost": total * TOKEN_PRICE}


def add_answer(run: AgentRun, answer: str, at: datetime) -> None:
    chunks: list[JSONObject] = [
        {"type": "text-start", "payload": {"id": "1-0"}},
        {"type": "text-delta", "payload": {"id": "1-0", "text": answer}},
    ]
    for number, chunk in enumerate(chunks, 1):
        RunEvent.objects.create(run=run, number=number, type="chunk", data=chunk, created_at=at)
