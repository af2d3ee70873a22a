"""The job that imports a file of items. It checks every row first, and stores all of them or none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.core.files.base import File
from django.db import transaction
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import max_role, require_role
from access_app.role import Role
from agentcms.errors import ApiError, Conflict
from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import Issue
from agents_app.editing.change_context import Source, change
from evals_app.datasets.changes import ITEMS_PER_BATCH, ItemsChange, dataset_not_found
from evals_app.datasets.schema import ItemTooLarge, schemas_of
from evals_app.exchange.checking import ItemFile, RowFault, check_items
from evals_app.exchange.columns import ColumnTargets
from evals_app.models import Dataset
from jobs_app import limits
from jobs_app.kinds import register_title
from jobs_app.models import Job, JobFile, ReportRow
from jobs_app.runner import job_handler
from versions_app.exchange.import_job import StoredUpload
from versions_app.exchange.report_rows import MAX_REPORTED_TEXT_LENGTH, truncate_storable
from versions_app.exchange.requester import requesting_user

IMPORT_ITEMS = "import_items"
UPLOAD_ITEMS = "upload_items"  # a file whose columns a person maps before the import
MAX_LISTED_FAULTS = 1000
ROWS_PER_PROGRESS = 500  # rows between two progress reports

limits.limit_per_user(IMPORT_ITEMS)
limits.limit_per_user(UPLOAD_ITEMS)
register_title(UPLOAD_ITEMS, "Upload of items")


# --- Starting


def start_item_import(user: Caller, dataset: Dataset, options: JSONObject, upload: StoredUpload) -> Job:
    """Start the import of a stored file. Raise TooManyJobs and FileQuotaExceeded.

    `options` has `format`, and may have `name` and `columns`. The caller sets `upload.is_taken` after the commit.
    """
    with transaction.atomic():
        job = limits.enqueue_for_user(IMPORT_ITEMS, job_parameters(user, dataset, options), user, upload.job_id)
        limits.attach_file(job, user, upload.name, upload.size)
    return job


def store_upload(user: Caller, dataset: Dataset, options: JSONObject, upload: StoredUpload) -> Job:
    """Keep a file until a person has mapped its columns. It replaces earlier files. Raise FileQuotaExceeded."""
    with transaction.atomic():
        limits.lock_jobs_of(user)
        files = JobFile.objects.filter(job__requested_by=user.pk, job__kind__in=(IMPORT_ITEMS, UPLOAD_ITEMS))
        # First: they count toward the quota of the new file. The file of an import that still runs stays.
        files.filter(job__state__in=(Job.State.DONE, Job.State.FAILED)).delete()
        job = Job.objects.create(
            pk=upload.job_id,
            kind=UPLOAD_ITEMS,
            state=Job.State.DONE,  # nothing runs it, it only has the file
            requested_by_id=user.pk,
            parameters=job_parameters(user, dataset, options),
            finished_at=timezone.now(),
        )
        limits.attach_file(job, user, upload.name, upload.size)
    return job


def start_mapped_import(user: Caller, dataset: Dataset, uploaded: Job, columns: ColumnTargets | None) -> Job | None:
    """Start the import of a kept file. Return None if it was imported or deleted. Raise TooManyJobs."""
    # The file is kept if rows are faulty, so that a person can map its columns in another way.
    options = {"format": uploaded.parameters["format"], "name": uploaded.parameters["name"], "keep": True}
    with transaction.atomic():
        limits.lock_jobs_of(user)
        # Under the lock: a second click finds that the file has moved to the first import.
        files = JobFile.objects.filter(job=uploaded)
        if not files.exists():
            return None
        parameters = job_parameters(user, dataset, {**options, "columns": columns})
        job = limits.enqueue_for_user(IMPORT_ITEMS, parameters, user)
        files.update(job=job)
    return job


def job_parameters(user: Caller, dataset: Dataset, options: JSONObject) -> JSONObject:
    # With the role of the API key, which limits what the import may do in the worker.
    return {"name": "", "columns": None, **options, "dataset": dataset.pk, "role": max_role(user)}


# --- Running


@job_handler(IMPORT_ITEMS, "Import of items")
def import_items(job: Job) -> JSONObject:
    """Check every row of a file, then store all items as one version, or none if a row is faulty."""
    result: JSONObject | None = job.result
    if result is None:  # not None if an earlier worker died after it stored the items
        result = import_file(job)
    if result["stored"] or not job.parameters.get("keep"):
        JobFile.objects.filter(job=job).delete()
    return result


def import_file(job: Job) -> JSONObject:
    user = requesting_user(job)
    dataset = Dataset.objects.for_user(user).filter(pk=job.parameters["dataset"]).first()
    if dataset is None:
        raise dataset_not_found(job.parameters["dataset"])
    require_role(user, Role.EDITOR, dataset.owner_id)
    job.report_rows.all().delete()  # those of a worker that died
    with JobFile.objects.get(job=job).open() as content:
        items = item_file(content, job)
        rows, faults = check_rows(job, dataset, items)
        if faults:
            return import_result(job, rows=rows, refused=faults)
        try:
            with change(actor=user, source=Source.IMPORT):
                return store_items(job, dataset, items, rows)
        except RowFault as fault:
            report_fault(job, fault.line, fault.reason)
        except ApiError as error:
            report_fault(job, 0, error.error)
        return import_result(job, rows=rows, refused=1)


def item_file(content: File[bytes], job: Job) -> ItemFile:
    parameters = job.parameters
    return ItemFile(content, parameters["format"], parameters["columns"], parameters["name"])


def check_rows(job: Job, dataset: Dataset, items: ItemFile) -> tuple[int, int]:
    """Check all rows and report those that are faulty. Return the numbers of rows and of faulty ones."""
    rows = faults = 0
    for line, fault in check_items(dataset, items):
        rows += 1
        if fault is not None:
            faults += 1
            if faults <= MAX_LISTED_FAULTS:
                report_fault(job, line, fault.reason)
        if rows % ROWS_PER_PROGRESS == 0:
            job.report_progress(done=rows)
    job.report_progress(done=rows, total=rows)
    return rows, faults


def report_fault(job: Job, line: int, reason: str) -> None:
    content = {"reason": truncate_storable(reason, MAX_REPORTED_TEXT_LENGTH)}
    # A file that ends in the middle of a row has two faults at its line.
    row, is_new = ReportRow.objects.get_or_create(
        job=job, number=line, defaults={"action": "refuse", "content": content}
    )
    if not is_new:
        row.content = {"reason": truncate_storable(f"{row.content['reason']} {reason}", MAX_REPORTED_TEXT_LENGTH)}
        row.save(update_fields=["content"])


@transaction.atomic
def store_items(job: Job, dataset: Dataset, items: ItemFile, rows: int) -> JSONObject:
    """Store the checked items as one version, with the result of the job.

    Raise Conflict for too many items, RowFault for one that is too large with what it keeps, and RoleRequired.
    """
    changes = ItemsChange(dataset)
    # Again, under the lock: the check of the rows takes its time, in which the dataset may move to another team.
    require_role(requesting_user(job), Role.EDITOR, changes.dataset.owner_id)
    job.report_progress(done=rows)  # locks the job, so that no other worker takes it over
    if not json_equal(schemas_of(changes.dataset), schemas_of(dataset)):
        raise Conflict("The schemas of the dataset were changed meanwhile. Import the file again.")
    checked = checked_items(items)
    while batch := list(islice(checked, ITEMS_PER_BATCH)):
        try:
            changes.put([item for _, item in batch])
        except ItemTooLarge as error:
            line, _ = batch[error.number]
            raise RowFault(line, [Issue("input", error.issues[0].message)]) from None
        changes.flush()
    changes.save()
    row = changes.row
    version = row.version if row.added or row.changed else None
    result = import_result(job, rows=rows, added=row.added, changed=row.changed, version=version, stored=True)
    job.report_progress(done=rows, result=result)
    return result


def checked_items(items: ItemFile) -> Iterator[tuple[int, JSONObject]]:
    """Yield the items of a checked file with their lines. Raise Conflict for a file that was changed."""
    for line, item in items.read():
        if isinstance(item, RowFault):
            raise Conflict("The file can no longer be read. Import it again.")
        yield line, item


def import_result(job: Job, **figures: Any) -> JSONObject:
    defaults = {"rows": 0, "added": 0, "changed": 0, "refused": 0, "version": None, "stored": False}
    report = f"/api/jobs/{job.pk}/records"
    return {"datasetId": job.parameters["dataset"], **defaults, **figures, "report": report}
