"""The import job. A file is JSON Lines: one record per agent with its live version and draft."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from itertools import count
from typing import IO, TYPE_CHECKING

from django.core.files.base import File
from django.db import transaction

from access_app.caller import Caller
from access_app.permissions import max_role
from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONObject
from jobs_app import limits
from jobs_app.files import file_storage, save_file
from jobs_app.models import Job, JobFile
from jobs_app.runner import job_handler
from versions_app.exchange.import_preview import preview_record
from versions_app.exchange.records import ACTIONS, MAX_RECORD_BYTES, Record, RecordOutcome, import_record
from versions_app.exchange.report_rows import OUTCOME_LOG, ReportWriter, adopt_outcome_log, drop_resolved_warnings
from versions_app.exchange.requester import requesting_user

if TYPE_CHECKING:
    from django.contrib.auth.models import User

IMPORT = "import_agents"

limits.limit_per_user(IMPORT)


class StoredUpload:
    """A file in the storage that an import may take. Used as a context manager, it is deleted if none did."""

    def __init__(self, content: File[bytes], size: int) -> None:
        self.job_id = uuid7()
        self.size = size
        self.name = save_file(f"{self.job_id}.upload", content)
        self.is_taken = False

    def __enter__(self) -> StoredUpload:
        return self

    def __exit__(self, *error: object) -> None:
        if not self.is_taken:
            file_storage().delete(self.name)


# --- Starting


def start_import(user: Caller, options: JSONObject, upload: StoredUpload) -> Job:
    """Start the import of a stored file. Raise TooManyJobs and FileQuotaExceeded.

    The caller sets `upload.is_taken` after the commit.
    """
    with transaction.atomic():
        job = limits.enqueue_for_user(IMPORT, {**options, "role": max_role(user)}, user, upload.job_id)
        limits.attach_file(job, user, upload.name, upload.size)
    return job


def start_checked_import(user: Caller, checked: Job, options: JSONObject) -> Job | None:
    """Start the import of a file that a dry run checked. Return None if the file was imported or deleted.

    Raise TooManyJobs.
    """
    with transaction.atomic():
        limits.lock_jobs_of(user)
        files = JobFile.objects.filter(job=checked)
        if not files.exists():
            return None
        job = limits.enqueue_for_user(IMPORT, {**options, "role": max_role(user)}, user)
        # Moved, not copied: the check has no file then, so that it cannot be imported twice.
        files.update(job=job)
    return job


def delete_checked_files(user: Caller) -> None:
    """Delete the files of the user's dry runs and failed imports, which a new check replaces."""
    finished = (Job.State.DONE, Job.State.FAILED)
    with transaction.atomic():
        # Before the files are looked for: an import that starts at this moment takes one of them.
        limits.lock_jobs_of(user)
        for file in JobFile.objects.filter(job__requested_by=user.pk, job__kind=IMPORT, job__state__in=finished):
            file.delete()


# --- Running


@job_handler(IMPORT, "Import of agents")
def import_agents(job: Job) -> JSONObject:
    """Import the records of a file, each in one transaction with its progress.

    If a worker dies, the next one continues with the next record.
    """
    result: JSONObject | None = job.result
    if result is None:  # not None if an earlier worker died while it deleted the file
        with open_upload(job) as file:
            result = import_records(job, file)
        job.report_progress(done=job.done, result=result)
    if not job.parameters.get("keep"):  # the dry run of a page, whose file may be imported next
        JobFile.objects.filter(job=job).delete()
    return result


def open_upload(job: Job) -> File[bytes]:
    """Open the file of an import. Releases without rows for files named it after the job."""
    file = JobFile.objects.filter(job=job).first()
    return file.open() if file is not None else file_storage().open(f"{job.pk}.upload")


def import_records(job: Job, file: IO[bytes]) -> JSONObject:
    """Import the records that no earlier worker imported. Return the number of records of each action."""
    cursor: JSONObject = job.cursor or {"line": 0, "counts": {}}
    counts, ids = Counter[str](cursor["counts"]), set[int]()
    if OUTCOME_LOG in cursor:
        with file_storage().open(f"{job.pk}.{OUTCOME_LOG}") as log:
            adopt_outcome_log(job, log, cursor[OUTCOME_LOG])
    report = ReportWriter(job)
    file_ids = hash_all_ids(file) if job.parameters.get("strict") else set()
    job.report_progress(done=counts.total(), total=sum(1 for _ in read_lines(file)))
    for number, line in read_lines(file):
        # Also of lines that are skipped: a later line with the same ID is an error.
        record = Record.parse(line, ids)
        if number <= cursor["line"]:  # imported by an earlier worker
            continue
        with transaction.atomic():
            user = requesting_user(job)  # for each record: the account may be switched off meanwhile
            outcome = import_or_preview(job, record, user, file_ids)
            counts[outcome.action] += 1
            report.add(number, outcome, record.name)
            position = {"line": number, "counts": dict(counts)}
            job.report_progress(done=counts.total(), cursor=position, report_size=report.size)
    drop_resolved_warnings(job)
    totals = {action: counts[action] for action in ACTIONS}
    records_url = f"/api/jobs/{job.pk}/records"
    return {"dryRun": bool(job.parameters.get("dryRun")), **totals, "listed": report.listed, "report": records_url}


def import_or_preview(job: Job, record: Record, user: User, file_ids: Container[int]) -> RecordOutcome:
    if job.parameters.get("keep"):  # the user of the page has not chosen yet whether to publish
        return preview_record(record, user, job.parameters)
    return import_record(record, user, job.parameters, file_ids)


def read_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each non-blank line with its number. A line that is too long is truncated."""
    file.seek(0)
    for number in count(1):
        # A byte more than is allowed tells `Record.parse` that the line is too long.
        line = piece = file.readline(MAX_RECORD_BYTES + 1)
        if not line:
            return
        while len(piece) > MAX_RECORD_BYTES and not piece.endswith(b"\n"):
            piece = file.readline(MAX_RECORD_BYTES + 1)
        if line.strip():
            yield number, line


def hash_all_ids(file: IO[bytes]) -> set[int]:
    """Return the hashes of all agent IDs of a file: a record may reference agents of later lines."""
    ids: set[int] = set()
    for _, line in read_lines(file):
        Record.parse(line, ids)
    return ids
