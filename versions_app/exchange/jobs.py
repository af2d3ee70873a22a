"""The export and import jobs. A file is JSON Lines: one record per agent with its live version and draft."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F

from access_app.models import ApiKey
from agentcms.ids import random_key
from agentcms.wire.names import to_wire
from agents_app.models import Agent, AgentQuerySet
from jobs_app.models import Job
from jobs_app.runner import job_handler
from versions_app.exchange.records import (
    ACTIONS,
    MAX_RECORD_BYTES,
    Outcome,
    Record,
    drop_resolved_warnings,
    import_record,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User

EXPORT = "export_agents"
IMPORT = "import_agents"
EXPORT_BATCH_SIZE = 20  # agents, each of which may have several megabytes
MAX_LISTED_RECORDS = 20_000  # in a result
PROGRESS_INTERVAL = 200  # exported records between two progress reports
# Imports in progress have files and cursors with this name, so it cannot change.
OUTCOME_LOG = "told"


def exchange_folder() -> Path:
    """Return the folder of exported and uploaded files. Create it if needed."""
    path = Path(settings.DATA_DIR) / "exchange"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def delete_old_files(days: int) -> None:
    """Delete the files of jobs that are older than this number of days."""
    for path in exchange_folder().iterdir():
        if path.stat().st_mtime < time.time() - days * 86_400:
            path.unlink(missing_ok=True)


def requesting_user(job: Job) -> User:
    """Return the user who requested a job, limited to the role of the API key of the request."""
    user: Any = job.requested_by
    if user is None or not user.is_active:
        raise ValidationError("The user who requested this job was deactivated or deleted.")
    user.api_key = ApiKey(role=job.parameters.get("role", ""))
    return cast("User", user)


# --- Export


@job_handler(EXPORT)
def export_agents(job: Job) -> dict[str, Any]:
    """Write the agents that the user may see, or a selection of them. The result is deterministic."""
    user, path = requesting_user(job), exchange_folder() / f"{job.pk}.jsonl"
    part = path.with_suffix(f".{random_key()}.part")  # unique: a worker that lost its lease may still be writing
    agents = Agent.objects.for_user(user).filter(active_version__isnull=False)
    if (agent_ids := job.parameters.get("agents")) is not None:
        agents = agents.filter(pk__in=agent_ids)
    job.report_progress(done=0, total=agents.count())
    digest, number = hashlib.sha256(), 0
    with part.open("wb") as file:
        for record in export_lines(agents):
            line = f"{record}\n".encode()
            digest.update(line)
            file.write(line)
            number += 1
            if number % PROGRESS_INTERVAL == 0:
                job.report_progress(done=number)
    job.report_progress(done=number)
    os.replace(part, path)
    return {
        "records": number,
        "bytes": path.stat().st_size,
        "sha256": digest.hexdigest(),
        "file": f"/api/jobs/{job.pk}/file",
    }


def export_lines(agents: AgentQuerySet) -> Iterator[str]:
    """Yield each agent as a line of canonical JSON."""
    columns = ("pk", "owner_id", "archived_at", "active_version__snapshot_text")
    drafts = F("head_version__snapshot_text"), F("active_version__snapshot_hash"), F("head_version__snapshot_hash")
    after = ""
    while rows := list(agents.filter(pk__gt=after).order_by("pk").values_list(*columns, *drafts)[:EXPORT_BATCH_SIZE]):
        for agent_id, owner_id, archived_at, live, head, live_hash, head_hash in rows:
            archived = '"archived":true,' if archived_at else ""
            draft = f'"draft":{head},' if head_hash != live_hash else ""
            rest = (
                f'"id":{json.dumps(agent_id, ensure_ascii=False)},"ownerId":{json.dumps(owner_id, ensure_ascii=False)}'
            )
            yield f'{{"agent":{live},{archived}{draft}{rest}}}'
        after = rows[-1][0]


# --- Import


@job_handler(IMPORT)
def import_agents(job: Job) -> dict[str, Any]:
    """Import the records of a file, each in one transaction with its progress.

    If a worker dies, the next one continues with the next record.
    """
    path = exchange_folder() / f"{job.pk}.upload"
    result: dict[str, Any] | None = job.result
    if result is None:  # not None if an earlier worker died while it deleted the files
        result = import_records(job, path)
        job.report_progress(done=job.done, result=result)
    delete_import_files(job, path)
    return result


def import_records(job: Job, path: Path) -> dict[str, Any]:
    """Import the records that no earlier worker imported. Return the counts and the outcomes of all records."""
    user = requesting_user(job)
    cursor: dict[str, Any] = job.cursor or {"line": 0, OUTCOME_LOG: 0, "counts": {}}
    counts, size, ids = Counter[str](cursor["counts"]), cursor[OUTCOME_LOG], set[int]()
    file_ids = hash_all_ids(path) if job.parameters.get("strict") else set()
    job.report_progress(done=counts.total(), total=sum(1 for _ in read_lines(path)))
    with open_outcome_log(job, size) as log:
        for number, line in read_lines(path):
            record = Record.parse(line, ids)
            if number <= cursor["line"]:  # imported by an earlier worker
                continue
            with transaction.atomic():
                outcome = import_record(record, user, job.parameters, file_ids)
                counts[outcome.action] += 1
                text = outcome_line(number, outcome) if counts.total() <= MAX_LISTED_RECORDS else b""
                size += len(text)
                # First report progress: it fails if another worker took over, whose log must not change.
                job.report_progress(
                    done=counts.total(), cursor={"line": number, OUTCOME_LOG: size, "counts": dict(counts)}
                )
                log.write(text)
                log.flush()
        outcomes = read_outcomes(log)
    totals = {action: counts[action] for action in ACTIONS}
    return {"dryRun": bool(job.parameters.get("dryRun")), **totals, "records": outcomes}


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each non-blank line with its number. A line that is too long is truncated."""
    with path.open("rb") as file:
        for number in count(1):
            line = piece = file.readline(MAX_RECORD_BYTES + 1)
            if not line:
                return
            while len(piece) > MAX_RECORD_BYTES and not piece.endswith(b"\n"):
                piece = file.readline(MAX_RECORD_BYTES + 1)
            if line.strip():
                yield number, line


def hash_all_ids(path: Path) -> set[int]:
    """Return the hashes of all agent IDs of a file: a record may reference agents of later lines."""
    ids: set[int] = set()
    for _, line in read_lines(path):
        Record.parse(line, ids)
    return ids


def open_outcome_log(job: Job, size: int) -> IO[bytes]:
    """Open the log of outcomes, truncated to `size` to drop lines that a worker did not commit."""
    file = (exchange_folder() / f"{job.pk}.{OUTCOME_LOG}").open("a+b")
    file.truncate(size)
    return file


def read_outcomes(log: IO[bytes]) -> list[dict[str, Any]]:
    """Return the outcomes of the log without the warnings that the import resolved."""
    log.seek(0)
    return drop_resolved_warnings([json.loads(line) for line in log])


def outcome_line(number: int, outcome: Outcome) -> bytes:
    values = {to_wire(name): value for name, value in outcome._asdict().items() if value}
    return json.dumps({"line": number, **values}).encode() + b"\n"


def delete_import_files(job: Job, path: Path) -> None:
    """Delete the files of a finished import."""
    if not job.parameters.get("keep"):  # the dry run of a page, whose file may be imported next
        path.unlink(missing_ok=True)
    (exchange_folder() / f"{job.pk}.{OUTCOME_LOG}").unlink(missing_ok=True)
