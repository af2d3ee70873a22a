"""The export job. A file has a record per agent with its live version and its draft."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import max_role
from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent, AgentQuerySet
from jobs_app import limits
from jobs_app.download_rights import OWNER_IDS
from jobs_app.files import file_storage, save_file, temporary_file
from jobs_app.models import Job, JobFile
from jobs_app.runner import job_handler
from versions_app.exchange.requester import requesting_user

EXPORT = "export_agents"
EXPORT_BATCH_SIZE = 20  # agents, each of which may have several megabytes
RECORDS_PER_REPORT = 200  # exported records between two progress reports
KEY_COLUMNS = ("pk", "owner_id", "archived_at", "active_version_id", "head_version_id")

limits.limit_per_user(EXPORT)


class ExportedFile(NamedTuple):
    """The figures of a written export. Exports with equal fingerprints have equal content."""

    records: int
    size: int  # in bytes
    sha256: str
    fingerprint: str
    owner_ids: list[str]


# --- Starting


def start_agent_export(user: Caller, agent_ids: Iterable[str] | None = None) -> Job:
    """Start an export of these agents, or of all that the user sees.

    Return the last export instead if nothing changed since, or if it has not started. Raise TooManyJobs and
    FileQuotaExceeded.
    """
    parameters: JSONObject = {"role": max_role(user)}
    if agent_ids is not None:
        parameters["agents"] = sorted(set(agent_ids))
    has_exports = JobFile.objects.filter(job__requested_by=user.pk, job__kind=EXPORT).exists()
    # It reads a row of each agent, for nothing if there is no export to compare with.
    fingerprint = export_fingerprint(exportable_agents(user, parameters)) if has_exports else ""
    with transaction.atomic():
        limits.lock_jobs_of(user)
        if equal := find_equal_export(user, parameters, fingerprint):
            return equal
        limits.require_quota(user)
        return limits.enqueue_for_user(EXPORT, parameters, user)


def find_equal_export(user: Caller, parameters: JSONObject, fingerprint: str) -> Job | None:
    """Return an export of the user with the same content, or one that waits and will have it. Keep its file longer."""
    exports = Job.objects.filter(requested_by=user.pk, kind=EXPORT)
    if waiting := exports.filter(state=Job.State.QUEUED, parameters=parameters).first():
        return waiting
    if not fingerprint:
        return None
    finished = exports.filter(state=Job.State.DONE, file__fingerprint=fingerprint).first()
    if finished is not None:
        JobFile.objects.filter(job=finished).update(used_at=timezone.now())
    return finished


def exportable_agents(user: Caller, parameters: JSONObject) -> AgentQuerySet:
    """Return the agents of an export with these parameters, in the order of the file."""
    agents = Agent.objects.for_user(user).filter(active_version__isnull=False).order_by("pk")
    agent_ids: Sequence[str] | None = parameters.get("agents")
    return agents if agent_ids is None else agents.filter(pk__in=agent_ids)


def export_fingerprint(agents: AgentQuerySet) -> str:
    """Return the fingerprint that an export of these agents would have."""
    # Versions never change, so their ids stand for their content.
    digest = hashlib.sha256()
    for key in agents.values_list(*KEY_COLUMNS).iterator():
        digest.update(fingerprint_part(key))
    return digest.hexdigest()


def fingerprint_part(key: Sequence[Any]) -> bytes:
    """Return the bytes of the fingerprint for the KEY_COLUMNS of an agent."""
    return json.dumps([str(value) for value in key]).encode()


# --- Running


@job_handler(EXPORT, "Export of agents")
def export_agents(job: Job) -> JSONObject:
    """Write the agents that the user may see, or a selection of them. The same agents always give the same file."""
    user = requesting_user(job)
    agents = exportable_agents(user, job.parameters)
    job.report_progress(done=0, total=agents.count())
    max_size = settings.JOB_FILES_PER_USER - limits.used_bytes(user)
    with temporary_file(f"{job.pk}.jsonl") as file:
        written = write_export(job, agents, file, max_size)
        name = save_file(f"{job.pk}.jsonl", file)
    try:
        with transaction.atomic():
            job.report_progress(done=written.records)
            limits.attach_file(job, user, name, written.size, written.fingerprint)
    except BaseException:  # a file without a row would never be deleted
        file_storage().delete(name)
        raise
    return {
        "records": written.records,
        "bytes": written.size,
        "sha256": written.sha256,
        "file": f"/api/jobs/{job.pk}/file",
        OWNER_IDS: written.owner_ids,
    }


def write_export(job: Job, agents: AgentQuerySet, file: IO[bytes], max_size: int) -> ExportedFile:
    """Write the records and report progress. Raise FileQuotaExceeded if the file becomes larger than `max_size`."""
    digest, fingerprint, number, size = hashlib.sha256(), hashlib.sha256(), 0, 0
    owner_ids: set[str] = set()
    for key, record in agent_lines(agents):
        line = f"{record}\n".encode()
        fingerprint.update(fingerprint_part(key))
        owner_ids.add(key[KEY_COLUMNS.index("owner_id")])
        digest.update(line)
        file.write(line)
        number += 1
        size += len(line)
        if size > max_size:
            raise limits.FileQuotaExceeded
        if number % RECORDS_PER_REPORT == 0:
            job.report_progress(done=number)
    return ExportedFile(number, size, digest.hexdigest(), fingerprint.hexdigest(), sorted(owner_ids))


def agent_lines(agents: AgentQuerySet) -> Iterator[tuple[Sequence[Any], str]]:
    """Yield the KEY_COLUMNS of each agent, and the agent as a line of canonical JSON."""
    texts = F("active_version__snapshot_text"), F("head_version__snapshot_text")
    hashes = F("active_version__snapshot_hash"), F("head_version__snapshot_hash")
    # By the last ID, not by an offset: agents may be created and deleted during a long export.
    after = ""
    while rows := list(agents.filter(pk__gt=after).values_list(*KEY_COLUMNS, *texts, *hashes)[:EXPORT_BATCH_SIZE]):
        for *key, live, head, live_hash, head_hash in rows:
            agent_id, owner_id = (json.dumps(value, ensure_ascii=False) for value in key[:2])
            draft = f'"draft":{head},' if head_hash != live_hash else ""
            archived = '"archived":true,' if key[2] else ""
            yield key, f'{{"agent":{live},{archived}{draft}"id":{agent_id},"ownerId":{owner_id}}}'
        after = rows[-1][0]
