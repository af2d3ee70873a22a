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
from typing import IO, Any, NamedTuple, Self

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F

from access_app.models import ApiKey
from access_app.roles import SHARED, Role, has_role, owners
from agentcms.ids import random_key
from agentcms.strict_json import InvalidJSON, parse
from agentcms.wire import canonical
from agents_app.changes import Source, change
from agents_app.models import Agent
from agents_app.shapes import ShapeError, read_agent, read_new_agent, to_body
from agents_app.sub_agents import refuse_circle
from jobs_app.models import Job
from jobs_app.work import work

EXPORT = "export_agents"
IMPORT = "import_agents"
BATCH = 20  # agents, of which each may be megabytes
MOST_LISTED = 20_000  # records that a result names
NOTE_EVERY = 200  # records of an export
MOST_BYTES = 4 * settings.DATA_UPLOAD_MAX_MEMORY_SIZE  # of a record


class Outcome(NamedTuple):
    """What became of a record: `create`, `update`, `same` or `refuse`, and why."""

    id: str
    action: str
    reason: str = ""


class Refusal(Exception):
    """A record that cannot be taken in, and why."""


def folder() -> Path:
    path = Path(settings.DATA_DIR) / "exchange"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def sweep_files(days: int) -> None:
    """Forget files whose jobs are past their age."""
    for path in folder().iterdir():
        if path.stat().st_mtime < time.time() - days * 86_400:
            path.unlink(missing_ok=True)


def acting(job: Job) -> Any:
    """The user who asked for a job, cut to the role of the key that was used."""
    user: Any = job.requested_by
    if user is None or not user.is_active:
        raise ValidationError("Whoever asked for this may not sign in any more.")
    user.api_key = ApiKey(role=job.parameters.get("role", ""))
    return user


# --- Out


@work(EXPORT)
def export(job: Job) -> dict[str, Any]:
    """Write what the caller may see, or of that what was chosen, by id; the same agents give the same bytes."""
    user, path = acting(job), folder() / f"{job.pk}.jsonl"
    draft = path.with_suffix(f".{random_key()}.part")  # a worker that was given up may still be writing
    agents = Agent.objects.for_user(user).filter(active_version__isnull=False)
    if (chosen := job.parameters.get("agents")) is not None:
        agents = agents.filter(pk__in=chosen)
    job.advance(done=0, total=agents.count())
    seen, number = hashlib.sha256(), 0
    with draft.open("wb") as file:
        for record in records(agents):
            line = f"{record}\n".encode()
            seen.update(line)
            file.write(line)
            number += 1
            if number % NOTE_EVERY == 0:
                job.advance(done=number)
    job.advance(done=number)
    os.replace(draft, path)
    return {
        "records": number,
        "bytes": path.stat().st_size,
        "sha256": seen.hexdigest(),
        "file": f"/api/jobs/{job.pk}/file",
    }


def records(agents: Any) -> Iterator[str]:
    """Each agent as one canonical line."""
    columns = ("pk", "owner_id", "active_version__snapshot_text")
    drafts = F("head_version__snapshot_text"), F("active_version__snapshot_hash"), F("head_version__snapshot_hash")
    after = ""
    while rows := list(agents.filter(pk__gt=after).order_by("pk").values_list(*columns, *drafts)[:BATCH]):
        for agent_id, owner_id, live, head, live_hash, head_hash in rows:
            ahead = f'"draft":{head},' if head_hash != live_hash else ""
            rest = (
                f'"id":{json.dumps(agent_id, ensure_ascii=False)},"ownerId":{json.dumps(owner_id, ensure_ascii=False)}'
            )
            yield f'{{"agent":{live},{ahead}{rest}}}'
        after = rows[-1][0]


# --- In


@work(IMPORT)
def take_in(job: Job) -> dict[str, Any]:
    """Take the records of a file in, each in one transaction with the note that it was: a worker that dies in the
    middle is followed by one that goes on with the next record."""
    user, path = acting(job), folder() / f"{job.pk}.upload"
    at: dict[str, Any] = job.cursor or {"line": 0, "told": 0, "counts": {}}
    counts: Counter[str] = Counter(at["counts"])
    size, ids = at["told"], set[int]()
    job.advance(done=counts.total(), total=sum(1 for _ in lines(path)))
    with told_so_far(job, size) as told:
        for number, line in lines(path):
            record = Record.read(line, ids)
            if number <= at["line"]:  # by an earlier worker
                continue
            with transaction.atomic():
                outcome = take(record, user, job.parameters)
                counts[outcome.action] += 1
                said = as_line(number, outcome) if counts.total() <= MOST_LISTED else b""
                size += len(said)
                # First the note, which fails where another worker took over: then nothing is written to its file.
                job.advance(done=counts.total(), cursor={"line": number, "told": size, "counts": dict(counts)})
                told.write(said)
                told.flush()
        told.seek(0)
        listed = [json.loads(line) for line in told]
    forget(job, path)
    words = {action: counts[action] for action in ("create", "update", "same", "refuse")}
    return {"dryRun": bool(job.parameters.get("dryRun")), **words, "records": listed}


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line that says something, with its number; of one that is too long the beginning."""
    with path.open("rb") as file:
        for number in count(1):
            line = piece = file.readline(MOST_BYTES + 1)
            if not line:
                return
            while len(piece) > MOST_BYTES and not piece.endswith(b"\n"):
                piece = file.readline(MOST_BYTES + 1)
            if line.strip():
                yield number, line


def told_so_far(job: Job, size: int) -> IO[bytes]:
    """The file of what became of each record, without what a worker wrote there and never committed."""
    file = (folder() / f"{job.pk}.told").open("a+b")
    file.truncate(size)
    return file


def as_line(number: int, outcome: Outcome) -> bytes:
    said = {key: value for key, value in outcome._asdict().items() if value}
    return json.dumps({"line": number, **said}).encode() + b"\n"


def forget(job: Job, path: Path) -> None:
    """Remove the files of an import that is over."""
    if not job.parameters.get("keep"):  # a page's dry run, whose file may be taken in next
        path.unlink(missing_ok=True)
    (folder() / f"{job.pk}.told").unlink(missing_ok=True)


class Record(NamedTuple):
    """A line of a file: its value, or why it has none; its id is blank where it says none."""

    id: str
    value: Any = None
    fault: str = ""

    @classmethod
    def read(cls, line: bytes, ids: set[int]) -> Self:
        """The record of a line; an id that stood on an earlier line, which `ids` remembers, is a fault."""
        if len(line) > MOST_BYTES:
            return cls("", fault=f"A record may have {MOST_BYTES >> 20} MB. This one has more.")
        try:
            value = parse(line)
        except InvalidJSON as error:
            return cls("", fault=str(error))
        agent_id = value.get("id") if isinstance(value, dict) else None
        if not isinstance(agent_id, str):
            return cls("", value)
        mark = int.from_bytes(hashlib.sha256(agent_id.encode()).digest()[:8])
        if mark in ids:
            return cls(agent_id, fault="An earlier line of the file has this id. Keep one of them.")
        ids.add(mark)
        return cls(agent_id, value)


def take(record: Record, user: Any, options: dict[str, Any]) -> Outcome:
    """Take one record in, or say why not."""
    agent_id = record.id
    if record.fault:
        return Outcome(agent_id, "refuse", record.fault)
    said = {"message": f"Imported from {options.get('name') or 'a file'}"[:500], "source": Source.IMPORT}
    try:
        live, draft, owner_id = read(record.value)
        with transaction.atomic(), change(actor=user, **said):
            action = apply(agent_id, live, draft, owner_id, user, bool(options.get("publish")))
            if options.get("dryRun"):
                transaction.set_rollback(True)
        return Outcome(agent_id, action)
    except ShapeError as error:
        return Outcome(agent_id, "refuse", " ".join(f"{field}: {message}" for field, message in error.issues[:10]))
    except Refusal as error:
        return Outcome(agent_id, "refuse", str(error))
    except IntegrityError:
        return Outcome(agent_id, "refuse", f"Agent with id {agent_id} already exists")


def read(record: Any) -> tuple[dict[str, Any], dict[str, Any] | None, str | None]:
    """The live configuration, the draft and the owner of a record. Raises Refusal and ShapeError."""
    if not isinstance(record, dict) or not isinstance(record.get("agent"), dict):
        raise Refusal('A record is an object with "id" and "agent", and may have "draft" and "ownerId".')
    whole = read_new_agent({**record["agent"], "id": record.get("id"), "ownerId": record.get("ownerId")})
    owner_id = whole.pop("owner_id")
    del whole["id"]
    return whole, read_agent(record["draft"]) if record.get("draft") is not None else None, owner_id


def apply(
    agent_id: str, live: dict[str, Any], draft: dict[str, Any] | None, owner_id: str | None, user: Any, publish: bool
) -> str:
    """Create or change the agent; changes of one that is there stay a draft unless they are to go live."""
    seen = Agent.objects.for_user(user).filter(pk=agent_id)
    if not seen.exists():
        return create(agent_id, live, draft, owner_for(user, owner_id), user)
    agent = seen.locked(agent_id)
    if not has_role(user, Role.PUBLISHER, agent.owner_id):
        raise Refusal(f"This needs the role publisher for {agent.owner_id or 'the shared space'}.")
    if owner_id not in (None, agent.owner_id):
        raise Refusal(f"The agent belongs to {agent.owner_id or 'the shared space'}. Hand it over first.")
    made = []
    if not equal(live, agent.active_version) and (publish or draft is None):
        refuse_circle(user, agent_id, live["agents"])
        with change(publish=publish):
            made.append(agent.edit_locked(live))
    if draft is not None and not equal(draft, agent.head_version):
        refuse_circle(user, agent_id, draft["agents"])
        with change(publish=False):
            made.append(agent.edit_locked(draft))
    return "update" if any(made) else "same"


def create(agent_id: str, live: dict[str, Any], draft: dict[str, Any] | None, owner_id: str, user: Any) -> str:
    refuse_circle(user, agent_id, [*live["agents"], *(draft["agents"] if draft else [])])
    agent = Agent(id=agent_id, owner_id=owner_id, **live)
    agent.save()
    if draft is not None:
        with change(publish=False):
            agent.edit(draft)
    return "create"


def owner_for(user: Any, named: str | None) -> str:
    """The owner of a new agent, which must be one that the caller may publish for. Raises Refusal."""
    if named is None and not user.is_superuser:
        able = list(owners(user, Role.PUBLISHER)[:2])
        if len(able) != 1:
            raise Refusal("Name the ownerId of this agent.")
        return able[0]
    owner_id = SHARED if named is None else named
    if not has_role(user, Role.PUBLISHER, owner_id):
        raise Refusal(f"This needs the role publisher for {owner_id or 'the shared space'}.")
    return owner_id


def equal(fields: dict[str, Any], version: Any) -> bool:
    return canonical(to_body(fields)) == version.snapshot_text
