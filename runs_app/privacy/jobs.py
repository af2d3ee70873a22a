"""Jobs that export or delete all data of a resource on request."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from access_app.caller import Caller
from agentcms.errors import Forbidden
from agentcms.wire.json_types import JSONObject, JSONValue
from jobs_app import limits
from jobs_app.download_rights import OWNER_IDS
from jobs_app.files import file_storage, save_file, temporary_file
from jobs_app.models import Job
from jobs_app.runner import enqueue_unless_queued, job_handler
from memory_app.realms import MemoryCaller, memory_caller
from runs_app.privacy.export import Reader, resource_lines
from runs_app.privacy.forgetting import EXPORT_RESOURCE, FORGET

LINES_PER_REPORT = 500
BOUND_MESSAGE = "An API key for one resource cannot export or delete its data. Use a key without a resource."

limits.limit_per_user(EXPORT_RESOURCE)


def personal_data_caller(user: Caller) -> MemoryCaller:
    """Return the realm of a caller who exports or deletes data of a resource, or downloads an export.

    Raise RoleRequired for a key that can only read, and Forbidden for one that serves one resource.
    """
    caller = memory_caller(user)
    caller.require_write()
    if caller.is_bound:
        raise Forbidden(BOUND_MESSAGE)
    return caller


def start_resource_export(user: Caller, realm: str, resource: str) -> Job:
    """Start an export of all data of a resource. Raise TooManyJobs and FileQuotaExceeded."""
    with transaction.atomic():
        limits.lock_jobs_of(user)
        limits.require_quota(user)
        return limits.enqueue_for_user(EXPORT_RESOURCE, {"realm": realm, "resource": resource}, user)


def start_forgetting(user: User, realm: str, resource: str) -> Job:
    """Start the deletion of all data of a resource."""
    parameters = {"realm": realm, "resource": resource, "by": user.get_username()}
    return enqueue_unless_queued(FORGET, parameters, user)


@job_handler(EXPORT_RESOURCE, "Export of the data of a resource")
def export_resource(job: Job) -> JSONObject:
    """Write all data of a resource, as far as its user may read it, into a file of JSON lines."""
    user = job.requested_by
    if user is None:
        return {}
    size = count = 0
    max_size = settings.JOB_FILES_PER_USER - limits.used_bytes(user)
    reader = Reader(user)
    lines = resource_lines(job.parameters["realm"], job.parameters["resource"], reader)
    with temporary_file(f"{job.pk}.jsonl") as file:
        for count, text in enumerate(lines, 1):
            size += file.write(f"{text}\n".encode())
            if size > max_size:
                raise limits.FileQuotaExceeded
            if count % LINES_PER_REPORT == 0:
                job.report_progress(done=count)
        name = save_file(f"{job.pk}.jsonl", file)
    try:
        limits.attach_file(job, user, name, size)
    except BaseException:  # a file without a row would never be deleted
        file_storage().delete(name)
        raise
    owner_ids: list[JSONValue] = [*sorted(reader.owner_ids)]
    return {"records": count, "bytes": size, "file": f"/api/jobs/{job.pk}/file", OWNER_IDS: owner_ids}
