"""Deletion of all data of a resource: its runs, threads, messages and memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, Q
from django.dispatch import Signal
from django.utils import timezone

from jobs_app.models import Job
from jobs_app.runner import job_handler
from memory_app.models import Forgotten, Message, Resource, Thread
from memory_app.realms import resource_digest
from runs_app.building.workflows import RUN_WORKFLOW
from runs_app.engine import leases
from runs_app.models import AgentRun, PendingCall
from runs_app.notices.webhook import WEBHOOK_JOB

FORGET, EXPORT_RESOURCE = "forget_resource", "export_resource"  # kinds of jobs
ROWS_PER_BATCH = 1000  # rows of a transaction

runs_forgotten = Signal()  # sent with `run_ids` before runs and their child runs are deleted on request


def runs_of(realm: str, key: str) -> Any:
    """Return the runs of a resource, with those of its threads."""
    return AgentRun.objects.filter(
        Q(resource__realm=realm, resource__key=key) | Q(thread__realm=realm, thread__resource_key=key)
    )


def calls_of(realm: str, key: str) -> Any:
    """Return the calls of a resource that waited for people. Those of deleted runs are known by a hash."""
    runs = runs_of(realm, key).order_by().values("pk")
    of_resource = Q(resource_digest=resource_digest(realm, key))
    return PendingCall.objects.filter(of_resource | Q(run__in=runs) | Q(root_id__in=runs))


def announce_deletion(run_ids: Collection[UUID]) -> None:
    """Delete the jobs of runs and of their child runs, and let other applications delete their copies."""
    runs = AgentRun.objects.filter(Q(pk__in=run_ids) | Q(root_id__in=run_ids))
    all_ids = [*runs.values_list("pk", flat=True)]
    texts = [str(run_id) for run_id in all_ids]
    of_workflow = Q(kind=RUN_WORKFLOW, parameters__run__in=texts)
    of_webhook = Q(kind=WEBHOOK_JOB, parameters__approval__runId__in=texts)  # it has the reason of a decision
    Job.objects.filter(of_workflow | of_webhook).delete()
    runs_forgotten.send(AgentRun, run_ids=all_ids)


def delete_exports(realm: str, key: str) -> None:
    """Delete the exports of a resource with their files, which would outlive its data."""
    jobs = Job.objects.filter(kind=EXPORT_RESOURCE, parameters__realm=realm, parameters__resource=key)
    for job in jobs:
        job.delete()


def anonymise_log(model: type[Model], ids: Iterable[Any], name: str) -> None:
    """Give rows another name in the log of the admin."""
    entries = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(model))
    entries.filter(object_id__in=[str(pk) for pk in ids]).update(object_repr=name)


@job_handler(FORGET, "Deletion of the data of a resource")
def forget(job: Job) -> dict[str, int]:
    """Delete all data of a resource in batches. A job that was interrupted continues with what is left."""
    realm, key = job.parameters["realm"], job.parameters["resource"]
    for run in runs_of(realm, key).unfinished():
        leases.cancel(run.pk)
    digest = resource_digest(realm, key)
    delete_exports(realm, key)
    counts: dict[str, int] = {"messages": 0, "threads": 0, "runs": 0, "approvals": 0} | (job.cursor or {})
    for name, rows in rows_of_resource(realm, key):
        while keys := [*rows.order_by("pk").values_list("pk", flat=True)[:ROWS_PER_BATCH]]:
            if name == "runs":
                announce_deletion(keys)
            anonymise_log(rows.model, keys, digest[:12])
            _, deleted = rows.model.objects.filter(pk__in=keys).delete()
            counts[name] += deleted.get(rows.model._meta.label, 0)  # with child runs and child threads
            job.report_progress(done=sum(counts.values()), cursor=counts)
    delete_resource(realm, key, digest, job.parameters.get("by", ""))
    # The row of the job must not say whose data it was.
    Job.objects.filter(pk=job.pk).update(parameters={"digest": digest})
    return counts


def rows_of_resource(realm: str, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a resource, in the order in which they are deleted."""
    # Calls of earlier releases are only known by their runs. A run that was active may have added some at its end.
    yield "approvals", calls_of(realm, key)
    yield "messages", Message.objects.filter(thread__realm=realm, thread__resource_key=key)
    yield "runs", runs_of(realm, key)
    yield "approvals", calls_of(realm, key)
    yield "threads", Thread.objects.filter(realm=realm, resource_key=key)


def delete_resource(realm: str, key: str, digest: str, by: str) -> None:
    """Delete the row of a resource, and note that it was forgotten."""
    resources = Resource.objects.filter(realm=realm, key=key)
    anonymise_log(Resource, resources.values_list("pk", flat=True), digest[:12])
    resources.delete()
    values = {"forgotten_at": timezone.now(), "forgotten_by": by}
    Forgotten.objects.update_or_create(digest=digest, defaults=values)


def restored_resources(forgotten: Mapping[str, datetime]) -> Iterator[tuple[str, str]]:
    """Yield realm and key of the resources that are there although they were forgotten, by hash and time.

    A backup has brought them back. Those that were created later are other data.
    """
    for realm, key, created_at in Resource.objects.values_list("realm", "key", "created_at").iterator():
        time = forgotten.get(resource_digest(realm, key))
        if time is not None and created_at < time:
            yield realm, key
