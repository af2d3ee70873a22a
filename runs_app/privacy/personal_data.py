"""Export and deletion of all data of a resource: its runs, threads, messages and memory."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, Q
from django.utils import timezone

from agentcms.wire.canonical import sha256_hex
from jobs_app.models import Job
from jobs_app.runner import job_handler
from memory_app.models import Forgotten, Message, Observation, Resource, Thread, Vector
from runs_app.engine import leases
from runs_app.models import AgentRun, PendingCall

FORGET, EXPORT_RESOURCE = "forget_resource", "export_resource"  # kinds of jobs
ROWS_PER_BATCH = 1000  # rows of a transaction

RESOURCE_COLUMNS = ("realm", "key", "working_memory", "created_at")
REVISION_COLUMNS = ("revision", "value", "run_id", "created_at")
RUN_COLUMNS = ("id", "agent_key", "input", "output", "status", "created_at", "finished_at")
THREAD_COLUMNS = ("key", "title", "metadata", "agent_key", "working_memory", "created_at", "updated_at")
VECTOR_COLUMNS = ("message__key", "part", "embedder", "scale", "created_at")
OBSERVATION_COLUMNS = ("generation", "first", "last", "is_active", "text", "model", "created_at")
MESSAGE_COLUMNS = ("key", "number", "role", "text", "data", "author_name", "attributes", "created_at")


def resource_digest(realm: str, key: str) -> str:
    """Return the hash by which a forgotten resource is known."""
    return sha256_hex(json.dumps([realm, key], ensure_ascii=False))


def runs_of(realm: str, key: str) -> Any:
    """Return the runs of a resource, with those of its threads."""
    return AgentRun.objects.filter(
        Q(resource__realm=realm, resource__key=key) | Q(thread__realm=realm, thread__resource_key=key)
    )


def export_lines(realm: str, key: str) -> Iterator[str]:
    """Yield all data of a resource as JSON lines."""

    def line(kind: str, values: dict[str, Any]) -> str:
        return json.dumps({"type": kind, **values}, ensure_ascii=False, cls=DjangoJSONEncoder)

    for resource in Resource.objects.filter(realm=realm, key=key):
        yield line("resource", {name: getattr(resource, name) for name in RESOURCE_COLUMNS})
        for revision in resource.working_revisions.order_by("revision").values(*REVISION_COLUMNS):
            yield line("workingRevision", revision)
    for thread in Thread.objects.filter(realm=realm, resource_key=key).order_by("pk").iterator():
        yield line("thread", {name: getattr(thread, name) for name in THREAD_COLUMNS})
        for revision in thread.working_revisions.order_by("revision").values(*REVISION_COLUMNS):
            yield line("workingRevision", {"thread": thread.key, **revision})
        rows = Message.objects.filter(thread=thread).order_by("number").values(*MESSAGE_COLUMNS)
        for row in rows.iterator(ROWS_PER_BATCH):
            yield line("message", {"thread": thread.key, **row})
        observations = Observation.objects.filter(thread=thread).order_by("generation", "first")
        for row in observations.values(*OBSERVATION_COLUMNS).iterator(ROWS_PER_BATCH):
            yield line("observation", {"thread": thread.key, **row})
        vectors = Vector.objects.filter(thread=thread).order_by("message", "part").values_list(*VECTOR_COLUMNS, "data")
        for *values, data in vectors.iterator(ROWS_PER_BATCH):
            columns = dict(zip(("message", *VECTOR_COLUMNS[1:]), values, strict=True))
            yield line("vector", {"thread": thread.key, **columns, "data": b64encode(data).decode()})
    for run in runs_of(realm, key).order_by("pk").values(*RUN_COLUMNS).iterator(ROWS_PER_BATCH):
        yield line("run", run)


def delete_calls(run_ids: Collection[UUID]) -> None:
    """Delete the calls of these runs and of their child runs that waited for people. They would outlive the runs."""
    PendingCall.objects.filter(Q(root_id__in=run_ids) | Q(run_id__in=run_ids)).delete()


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
    counts: dict[str, int] = job.cursor or {"messages": 0, "threads": 0, "runs": 0}
    messages = Message.objects.filter(thread__realm=realm, thread__resource_key=key)
    threads = Thread.objects.filter(realm=realm, resource_key=key)
    parts: list[tuple[str, Any]] = [("messages", messages), ("runs", runs_of(realm, key)), ("threads", threads)]
    for name, rows in parts:
        while keys := [*rows.order_by("pk").values_list("pk", flat=True)[:ROWS_PER_BATCH]]:
            if name == "runs":
                delete_calls(keys)
            anonymise_log(rows.model, keys, digest[:12])
            rows.model.objects.filter(pk__in=keys).delete()
            counts[name] += len(keys)
            job.report_progress(done=sum(counts.values()), cursor=counts)
    delete_resource(realm, key, digest, job.parameters.get("by", ""))
    # The row of the job must not say whose data it was.
    Job.objects.filter(pk=job.pk).update(parameters={"digest": digest})
    return counts


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
