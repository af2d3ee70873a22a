"""The nightly pruning of versions."""

from __future__ import annotations

from collections import Counter

from django.conf import settings
from django.db import transaction

from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent
from jobs_app.models import Job
from jobs_app.runner import job_handler
from versions_app.retention import delete_aged, delete_surplus, explain_retention

PRUNE = "prune_versions"
PRUNE_BATCH_SIZE = 100  # agents that are locked at once: a save of one of them waits
MAX_LISTED_VERSIONS = 1000
REMOVAL_REASONS = ("surplus", "too old")


@job_handler(PRUNE, "Pruning of versions")
def prune_all(job: Job) -> JSONObject:
    """Prune all agents, a hundred per transaction. With `dryRun`, only report what would be removed."""
    limit = job.parameters.get("limit") or settings.AGENT_VERSION_LIMIT
    if job.parameters.get("dryRun"):
        return preview_pruning(job, limit)
    job.report_progress(done=job.done, total=Agent.objects.without_archived().count())
    state: JSONObject = job.cursor or {"after": None, "removed": 0}
    while batch := next_agent_ids(state["after"]):
        with transaction.atomic():
            # Skip locked agents: the save that holds the lock prunes its agent.
            agents = Agent.objects.filter(pk__in=batch).without_archived()
            unlocked = list(agents.select_for_update(skip_locked=True).values_list("pk", flat=True))
            state = {
                "after": batch[-1],
                "removed": state["removed"] + delete_surplus(unlocked, limit) + delete_aged(unlocked),
            }
            job.report_progress(done=job.done + len(batch), cursor=state)
    return {"removed": state["removed"], "limit": limit}


def preview_pruning(job: Job, limit: int) -> JSONObject:
    """Report what pruning would remove and the reasons for keeping the rest. List at most a thousand versions."""
    done, total = 0, Agent.objects.without_archived().count()  # starts over after a worker died
    reasons: Counter[str] = Counter()
    listed: list[JSONObject] = []
    after = None
    while batch := next_agent_ids(after):
        for agent_id, number, reason in explain_retention(batch, limit):
            reasons[reason] += 1
            if reason in REMOVAL_REASONS and len(listed) < MAX_LISTED_VERSIONS:
                listed.append({"agentId": agent_id, "versionNumber": number})
        after, done = batch[-1], done + len(batch)
        job.report_progress(done=done, total=total)
    removable = sum(reasons.pop(reason, 0) for reason in REMOVAL_REASONS)
    return {"limit": limit, "removed": 0, "surplus": removable, "versions": listed, "kept": dict(reasons)}


def next_agent_ids(after: str | None) -> list[str]:
    """Return the IDs of the next batch of agents, ordered by ID. Archived agents keep all versions."""
    agents = Agent.objects.without_archived().order_by("pk")
    if after is not None:
        agents = agents.filter(pk__gt=after)
    return list(agents.values_list("pk", flat=True)[:PRUNE_BATCH_SIZE])
