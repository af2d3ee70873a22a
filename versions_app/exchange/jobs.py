"""Agents as JSON Lines: one record per agent with what is live and, if one is ahead, the draft."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F

from access_app.models import ApiKey
from agentcms.ids import random_key
from agentcms.wire.names import to_wire
from agents_app.models import Agent
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

EXPORT = "export_agents"
IMPORT = "import_agents"
EXPORT_BATCH_SIZE = 20  # agents, of which each may be megabytes
MAX_LISTED_RECORDS = 20_000  # records that a result names
PROGRESS_INTERVAL = 200  # records of an export


def exchange_folder() -> Path:
    path = Path(settings.DATA_DIR) / "exchange"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def delete_old_files(days: int) -> None:
    """Forget files whose jobs are past their age."""
    for path in exchange_folder().iterdir():
        if path.stat().st_mtime < time.time() - days * 86_400:
            path.unlink(missing_ok=True)


def requesting_user(job: Job) -> Any:
    """The user who asked for a job, cut to the role of the key that was used."""
    user: Any = job.requested_by
    if user is None or not user.is_active:
        raise ValidationError("Whoever asked for this may not sign in any more.")
    user.api_key = ApiKey(role=job.parameters.get("role", ""))
    return user


# --- Out


@job_handler(EXPORT)
def export_agents(job: Job) -> dict[str, Any]:
    """Write what the caller may see, or of that what was chosen, by id; the same agents give the same bytes."""
    user, path = requesting_user(job), exchange_folder() / f"{job.pk}.jsonl"
    draft = path.with_suffix(f".{random_key()}.part")  # a worker that was given up may still be writing
    agents = Agent.objects.for_user(user).filter(active_version__isnull=False)
    if (chosen := job.parameters.get("agents")) is not None:
        agents = agents.filter(pk__in=chosen)
    job.report_progress(done=0, total=agents.count())
    seen, number = hashlib.sha256(), 0
    with draft.open("wb") as file:
        for record in export_lines(agents):
            line = f"{record}\n".encode()
            seen.update(line)
            file.write(line)
            number += 1
            if number % PROGRESS_INTERVAL == 0:
                job.report_progress(done=number)
    job.report_progress(done=number)
    os.replace(draft, path)
    return {
        "records": number,
        "bytes": path.stat().st_size,
        "sha256": seen.hexdigest(),
        "file": f"/api/jobs/{job.pk}/file",
    }


def export_lines(agents: Any) -> Iterator[str]:
    """Each agent as one canonical line."""
    columns = ("pk", "owner_id", "active_version__snapshot_text")
    drafts = F("head_version__snapshot_text"), F("active_version__snapshot_hash"), F("head_version__snapshot_hash")
    after = ""
    while rows := list(agents.filter(pk__gt=after).order_by("pk").values_list(*columns, *drafts)[:EXPORT_BATCH_SIZE]):
        for agent_id, owner_id, live, head, live_hash, head_hash in rows:
            ahead = f'"draft":{head},' if head_hash != live_hash else ""
            rest = (
                f'"id":{json.dumps(agent_id, ensure_ascii=False)},"ownerId":{json.dumps(owner_id, ensure_ascii=False)}'
            )
            yield f'{{"agent":{live},{ahead}{rest}}}'
        after = rows[-1][0]


# --- In


@job_handler(IMPORT)
def import_agents(job: Job) -> dict[str, Any]:
    """Take the records of a file in, each in one transaction with the note that it was: a worker that dies in the
    middle is followed by one that goes on with the next record."""
    path = exchange_folder() / f"{job.pk}.upload"
    result: dict[str, Any] | None = job.result
    if result is None:  # else an earlier worker died while it cleared away
        result = import_records(job, path)
        job.report_progress(done=job.done, result=result)
    delete_import_files(job, path)
    return result


def import_records(job: Job, path: Path) -> dict[str, Any]:
    """Take in what no earlier worker did; what it came to, with what became of each record."""
    user = requesting_user(job)
    at: dict[str, Any] = job.cursor or {"line": 0, "told": 0, "counts": {}}
    counts, size, ids = Counter[str](at["counts"]), at["told"], set[int]()
    coming = hash_all_ids(path) if job.parameters.get("strict") else set()
    job.report_progress(done=counts.total(), total=sum(1 for _ in read_lines(path)))
    with open_outcome_log(job, size) as told:
        for number, line in read_lines(path):
            record = Record.read(line, ids)
            if number <= at["line"]:  # by an earlier worker
                continue
            with transaction.atomic():
                outcome = import_record(record, user, job.parameters, coming)
                counts[outcome.action] += 1
                said = outcome_line(number, outcome) if counts.total() <= MAX_LISTED_RECORDS else b""
                size += len(said)
                # First the note, which fails where another worker took over: then nothing is written to its file.
                job.report_progress(done=counts.total(), cursor={"line": number, "told": size, "counts": dict(counts)})
                told.write(said)
                told.flush()
        told.seek(0)
        listed = drop_resolved_warnings([json.loads(line) for line in told])
    words = {action: counts[action] for action in ACTIONS}
    return {"dryRun": bool(job.parameters.get("dryRun")), **words, "records": listed}


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line that says something, with its number; of one that is too long the beginning."""
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
    """The marks of all ids in a file: its agents may name one another, whichever comes first."""
    ids: set[int] = set()
    for _, line in read_lines(path):
        Record.read(line, ids)
    return ids


def open_outcome_log(job: Job, size: int) -> IO[bytes]:
    """The file of what became of each record, without what a worker wrote there and never committed."""
    file = (exchange_folder() / f"{job.pk}.told").open("a+b")
    file.truncate(size)
    return file


def outcome_line(number: int, outcome: Outcome) -> bytes:
    said = {to_wire(name): value for name, value in outcome._asdict().items() if value}
    return json.dumps({"line": number, **said}).encode() + b"\n"


def delete_import_files(job: Job, path: Path) -> None:
    """Remove the files of an import that is over."""
    if not job.parameters.get("keep"):  # a page's dry run, whose file may be taken in next
        path.unlink(missing_ok=True)
    (exchange_folder() / f"{job.pk}.told").unlink(missing_ok=True)
