"""Deletion of all data of a resource: its runs, threads, messages and memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.dispatch import Signal
from django.utils import timezone

from agentcms.db.after_commit import call_after_commit
from jobs_app.models import Job
from jobs_app.runner import job_handler
from memory_app.history.locks import lock_threads
from memory_app.models import Forgotten, Message, Resource, Thread
from memory_app.realms import resource_digest, user_realm
from runs_app.building.workflows import RUN_WORKFLOW
from runs_app.engine import run_ends
from runs_app.events.notifications import notifier
from runs_app.memory.thread_deletion import delete_threads
from runs_app.models import AgentRun, PendingCall
from runs_app.notices.webhook import WEBHOOK_JOB
from runs_app.runs_of_resources import calls_of, in_any, runs_of, user_of

FORGET, EXPORT_RESOURCE = "forget_resource", "export_resource"  # kinds of jobs
ROWS_PER_BATCH = 1000  # rows of a transaction
# What is there is from before the deletion, also if the clock of another process was ahead, or was set back since.
MAX_CLOCK_DIFFERENCE = timedelta(days=1)

runs_forgotten = Signal()  # sent with `run_ids` before runs and their child runs are deleted on request
# Sent with `digest`, the hash of a resource whose data is deleted on request, and `before`: what is newer stays.
resource_forgotten = Signal()


def announce_deletion(run_ids: Collection[UUID]) -> None:
    """Delete the jobs of runs and of their child runs, and let other applications delete their copies."""
    runs = AgentRun.objects.in_trees_of(run_ids).order_by("pk")
    ids = runs.values_list("pk", flat=True)
    batch = [*ids[:ROWS_PER_BATCH]]
    while batch:  # a run may have very many child runs
        texts = [str(run_id) for run_id in batch]
        of_workflow = Q(kind=RUN_WORKFLOW, parameters__run__in=texts)
        of_webhook = Q(kind=WEBHOOK_JOB, parameters__approval__runId__in=texts)  # it has the reason of a decision
        Job.objects.filter(of_workflow | of_webhook).delete()
        runs_forgotten.send(AgentRun, run_ids=batch)
        batch = [*ids.filter(pk__gt=batch[-1])[:ROWS_PER_BATCH]]


def delete_exports(realm: str, key: str) -> None:
    """Delete the exports of a resource with their files, which would outlive its data."""
    jobs = Job.objects.filter(kind=EXPORT_RESOURCE, parameters__realm=realm, parameters__resource=key)
    for job_id in [*jobs.values_list("pk", flat=True)]:
        with transaction.atomic():
            # Locked before Django looks for its file, or a worker could attach one in between.
            for job in Job.objects.select_for_update(of=("self",)).filter(pk=job_id).only("pk"):
                job.delete()


def anonymise_log(model: type[Model], ids: Iterable[object], name: str) -> None:
    """Give rows another name in the admin log."""
    entries = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(model))
    entries.filter(object_id__in=[str(pk) for pk in ids]).update(object_repr=name)


@job_handler(FORGET, "Deletion of the data of a resource")
def forget_resource_job(job: Job) -> dict[str, int]:
    """Delete all data of a resource in batches. A job that was interrupted continues with what is left."""
    realm, key = job.parameters["realm"], job.parameters["resource"]
    # From now on, requests add no threads and no runs to it.
    Resource.objects.filter(realm=realm, key=key).update(forgetting_since=timezone.now())
    for run_id in runs_of(realm, key).unfinished().values_list("pk", flat=True):
        run_ends.cancel_run(run_id)
    digest = resource_digest(realm, key)
    delete_exports(realm, key)
    resource_forgotten.send(Resource, digest=digest, before=timezone.now() + MAX_CLOCK_DIFFERENCE)
    counts: dict[str, int] = {"messages": 0, "threads": 0, "runs": 0, "approvals": 0} | (job.cursor or {})
    is_gone = False
    while not is_gone:
        for name, rows in rows_of_resource(realm, key):
            while keys := [*rows.order_by("pk").values_list("pk", flat=True)[:ROWS_PER_BATCH]]:
                counts[name] += delete_with_children(rows.model, keys, digest)
                job.report_progress(done=sum(counts.values()), cursor=counts)
        is_gone = delete_resource(realm, key, digest)
    # Again, for copies that were made of a run before it was deleted, and exports that were started meanwhile.
    resource_forgotten.send(Resource, digest=digest, before=timezone.now() + MAX_CLOCK_DIFFERENCE)
    delete_exports(realm, key)
    note_forgotten(digest, job.parameters.get("by", ""))
    # The row of the job must not say whose data it was.
    Job.objects.filter(pk=job.pk).update(parameters={"digest": digest})
    return counts


def rows_of_resource(realm: str, key: str) -> Iterator[tuple[str, QuerySet[Model]]]:
    """Yield the rows of a resource, in the order in which they are deleted."""
    # Calls of earlier releases are only known by their runs. A run that was active may have added some at its end.
    yield "approvals", calls_of(realm, key)
    yield "messages", Message.objects.filter(thread__realm=realm, thread__resource_key=key)
    yield "runs", runs_of(realm, key)
    yield "approvals", calls_of(realm, key)
    # Both columns: rows of an earlier release have no foreign key.
    of_resource = Thread.objects.filter(resource__realm=realm, resource__key=key)
    yield "threads", in_any(Thread, Thread.objects.filter(realm=realm, resource_key=key), of_resource)


def delete_with_children(model: type[Model], keys: Sequence[Any], digest: str) -> int:
    """Delete rows, and return their number with that of child runs or of child threads."""
    if model is AgentRun:
        announce_deletion(keys)
    anonymise_log(model, keys, digest[:12])
    if model is Thread:
        return delete_threads(keys)
    while (count := delete_locked(model, keys)) is None:
        pass
    return count


@transaction.atomic
def delete_locked(model: type[Model], keys: Sequence[Any]) -> int | None:
    """Delete rows under the locks of those who change them. Return None if a child run was added meanwhile."""
    if not lock_owners(model, keys):
        return None
    if model is AgentRun:
        unfinished = AgentRun.objects.in_trees_of(keys).unfinished().values_list("pk", flat=True)
        call_after_commit(notifier.notify, dict.fromkeys(unfinished, True))  # or readers wait until they look again
    # Only the key: Django loads the rows that it deletes, and messages and runs may be long.
    _, deleted = model._default_manager.filter(pk__in=keys).only("pk").delete()
    return deleted.get(model._meta.label, 0)


def lock_owners(model: type[Model], keys: Sequence[Any]) -> bool:
    """Lock what holds these rows: the threads of messages, the runs of calls, or runs with their child runs.

    Return False if a child run was added meanwhile, which is not locked.
    """
    if model is Message:
        lock_threads({*Message.objects.filter(pk__in=keys).values_list("thread", flat=True)})
        return True
    is_of_runs = model is AgentRun
    owners = AgentRun.objects.in_trees_of(keys) if is_of_runs else AgentRun.objects.filter(pending_calls__in=keys)
    runs = AgentRun.objects.filter(pk__in=owners.values("pk"))
    locked = runs.lock_in_order()
    return {*runs.values_list("pk", flat=True)} <= locked


@transaction.atomic
def delete_resource(realm: str, key: str, digest: str) -> bool:
    """Delete the row of a resource. Return False if a request that had begun before has added something."""
    # Locked: rows that refer to it can only be stored after this transaction, and are then refused.
    row = Resource.objects.select_for_update(of=("self",)).filter(realm=realm, key=key).first()
    if row is None:
        return True
    if row.threads.exists() or row.runs.exists():
        return False
    anonymise_log(Resource, [row.pk], digest[:12])
    row.delete()
    return True


def note_forgotten(digest: str, by: str) -> None:
    """Note that a resource was forgotten, by its hash."""
    values = {"forgotten_at": timezone.now(), "forgotten_by": by}
    Forgotten.objects.update_or_create(digest=digest, defaults=values)


def restored_resources(forgotten: Mapping[str, datetime]) -> Iterator[tuple[str, str]]:
    """Yield realm and key of the resources that are there although they were forgotten, by hash and time.

    A backup has brought them back. Those that were created later are other data.
    """
    for realm, key, created_at in Resource.objects.values_list("realm", "key", "created_at").iterator():
        time = forgotten.get(resource_digest(realm, key))
        # The own resource of a user follows below.
        if time is not None and created_at < time and user_of(realm, key) is None:
            yield realm, key
    for user_id in get_user_model().objects.values_list("pk", flat=True).iterator():
        own = user_realm(user_id)
        time = forgotten.get(resource_digest(own, own))
        if time is not None and has_own_data(own, time):
            yield own, own


def has_own_data(realm: str, before: datetime) -> bool:
    """Return whether a user has data from before a time. Runs without memory make no row for the resource."""
    rows = (Resource.objects.filter(realm=realm, key=realm), runs_of(realm, realm), calls_of(realm, realm))
    return any(query.filter(created_at__lt=before).exists() for query in rows)


def delete_restored_copies(digest: str, before: datetime) -> int:
    """Delete the approvals of a forgotten resource that has no row, and the copies of its runs: they have its hash.

    Return the number of approvals.
    """
    count, calls = 0, PendingCall.objects.filter(resource_digest=digest, created_at__lt=before)
    while keys := [*calls.order_by("pk").values_list("pk", flat=True)[:ROWS_PER_BATCH]]:
        count += delete_with_children(PendingCall, keys, digest)
    resource_forgotten.send(Resource, digest=digest, before=before)
    return count
