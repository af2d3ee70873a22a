"""Whether the history keeps its promises: every pointer, number, hash and picture, and the trigger that guards them.

A repair loses nothing: it moves a pointer that points nowhere, records a row that history missed, raises a counter or
puts the trigger back. What has no such repair, such as a snapshot that is not what its hash says, is only reported.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery

from agentcms.db import write_batch
from agentcms.wire.canonical import canonical, sha256_hex
from agents_app.editing.change_context import change
from agents_app.models import Agent, search_index
from agents_app.search import database
from jobs_app.models import Job
from versions_app.integrity import triggers
from versions_app.models import Activation, AgentVersion
from versions_app.publishing import build_activation

log = logging.getLogger(__name__)

CHECK_HISTORY = "check_history"
CHECK_BATCH_SIZE = 500
MAX_LISTED_FAULTS = 1000
RESULT_KEYS = ("versions", "repaired", "counts", "faults")
CATCH_UP_MESSAGE = "Caught up with changes made outside the application"


@dataclass(frozen=True)
class Fault:
    """A promise that is not kept; `kind` is a stable word."""

    kind: str
    agentId: str
    message: str
    repaired: bool = False


def run_check(job: Job) -> dict[str, Any]:
    """Look at every agent and version, a batch at a time; with `repair` mend what can be mended without loss."""
    repair = bool(job.parameters.get("repair"))
    state: dict[str, Any] = job.cursor or {"after": "", "versions": 0, "counts": {}, "repaired": 0, "faults": []}
    if job.cursor is None:
        record_faults(state, [*check_trigger(repair), *check_search_triggers(repair)])
        job.report_progress(done=0, total=Agent.objects.count(), cursor=state)
    while batch := list(agents_to_check().filter(pk__gt=state["after"]).order_by("pk")[:CHECK_BATCH_SIZE]):
        for agent in batch:
            record_faults(state, check_agent(agent, repair))
        state["versions"] += check_versions(batch, state)
        state["after"] = batch[-1].pk
        job.report_progress(done=job.done + len(batch), cursor=state)
    found = sum(state["counts"].values())
    if left := found - state["repaired"]:
        log.error("The check of the history found %d faults that nobody repaired; see job %s.", left, job.pk)
    return {"agents": job.done, "found": found, **{key: state[key] for key in RESULT_KEYS}}


def record_faults(state: dict[str, Any], faults: list[Fault]) -> None:
    counts = Counter(state["counts"])
    for fault in faults:
        counts[fault.kind] += 1
        state["repaired"] += fault.repaired
        if len(state["faults"]) < MAX_LISTED_FAULTS:
            state["faults"].append(asdict(fault))
    state["counts"] = dict(counts)


def check_trigger(repair: bool) -> list[Fault]:
    if triggers.is_installed():
        return []
    if repair:
        triggers.install("default")
    return [Fault("trigger", "", "The trigger that keeps snapshots from changing is missing.", repair)]


def check_search_triggers(repair: bool) -> list[Fault]:
    if database.is_installed():
        return []
    if repair:
        database.reinstall()
    return [Fault("search", "", "The triggers that keep the index of words are missing.", repair)]


def agents_to_check() -> QuerySet[Agent]:
    """Agents with their two versions, their rows of the index, the lowest and highest number, and what the log says
    is live."""
    numbers = AgentVersion.objects.filter(agent=OuterRef("pk")).values("version_number")
    moves = Activation.objects.filter(agent=OuterRef("pk")).order_by("-pk")
    return (
        Agent.objects.with_versions()
        .prefetch_related("index")
        .annotate(
            lowest=Subquery(numbers.order_by("version_number")[:1]),
            highest=Subquery(numbers.order_by("-version_number")[:1]),
            logged=Subquery(moves.values("to_version_id")[:1]),
        )
    )


def check_agent(agent: Any, repair: bool) -> list[Fault]:
    """What is wrong with an examined agent, looked at again under its lock where anything is."""
    if not any(find_faults(agent)):
        return []
    with transaction.atomic():
        row = agents_to_check().select_for_update(of=("self",)).filter(pk=agent.pk).first()
        faults = list(find_faults(row)) if row else []
        if row is None or not faults or not repair:
            return faults
        repair_row(row)
        left = {fault.kind for fault in find_faults(agents_to_check().get(pk=row.pk))}
        return [replace(fault, repaired=fault.kind not in left) for fault in faults]


def find_faults(agent: Any) -> Iterator[Fault]:
    """The promises of one examined row."""
    yield from find_pointer_faults(agent, "active", agent.active_version)
    yield from find_pointer_faults(agent, "head", agent.head_version)
    head = agent.head_version
    if owns_version(agent, head) and sha256_hex(agent.snapshot_text) != head.snapshot_hash:
        yield Fault("row", agent.pk, f"The row is not the picture of its head, version {head.version_number}.")
    if (agent.highest or 0) > agent.last_version_number:
        said = f"The counter stands at {agent.last_version_number}, below version {agent.highest}."
        yield Fault("counter", agent.pk, said)
    if agent.lowest == 0:
        yield Fault("number", agent.pk, "A version has the number 0.")
    if agent.active_version_id and agent.logged != agent.active_version_id:
        yield Fault("activation", agent.pk, "The newest activation does not name the version that is live.")
    if not is_indexed(agent):
        yield Fault("index", agent.pk, "What lists search and filter by is not what its versions say.")


def find_pointer_faults(agent: Agent, name: str, version: AgentVersion | None) -> Iterator[Fault]:
    if version is None:
        yield Fault(f"{name}_missing", agent.pk, f"The {name} version is missing.")
    elif not owns_version(agent, version):
        yield Fault(f"{name}_foreign", agent.pk, f"The {name} version belongs to agent {version.agent_id}.")


def is_indexed(agent: Agent) -> bool:
    """Whether lists find an agent by what it says; a version that cannot be read is another fault."""
    if not (owns_version(agent, agent.active_version) and owns_version(agent, agent.head_version)):
        return True
    try:
        return search_index.index_is_current(agent)
    except (ValueError, TypeError, KeyError):
        return True


def reindex(agent: Agent) -> bool:
    """Index an agent anew where its rows of the index are wrong; whether they were. Its `index` may be prefetched."""
    if is_indexed(agent):
        return False
    with transaction.atomic():
        row = Agent.objects.get_locked(agent.pk)
        if wrong := not is_indexed(row):
            search_index.rebuild_index(row)
    return wrong


def repair_row(row: Any) -> None:
    """Put right what can be put right without losing anything; the caller holds the row's lock."""
    newest = row.versions.order_by("-version_number").first()
    number = max(row.last_version_number, newest.version_number if newest else 0)
    values: dict[str, Any] = {"last_version_number": number, "revision": row.revision + 1}
    if not owns_version(row, row.head_version):
        values["head_version"] = newest
    if not owns_version(row, row.active_version):
        values["active_version"] = row.versions.filter(pk=row.logged).first() or newest
    Agent.objects.filter(pk=row.pk).update_unguarded(**values)
    with change(message=CATCH_UP_MESSAGE):
        AgentVersion.objects.record(Agent.objects.get(pk=row.pk))
        mended: Any = agents_to_check().get(pk=row.pk)
        if mended.active_version and mended.logged != mended.active_version_id:
            before = row.versions.filter(pk=mended.logged).first()
            write_batch.insert_row(build_activation(mended, before, mended.active_version, CATCH_UP_MESSAGE))
    reindex(mended)


def owns_version(row: Agent, version: AgentVersion | None) -> bool:
    return version is not None and version.agent_id == row.pk


def check_versions(agents: list[Agent], state: dict[str, Any]) -> int:
    """Report the versions of these agents that are not what they say; returns how many there are."""
    versions = AgentVersion.objects.filter(agent__in=[agent.pk for agent in agents]).order_by()
    fields = ("agent_id", "version_number", "based_on", "snapshot_text", "snapshot_hash")
    count = 0
    for agent_id, number, based_on, text, stored_hash in versions.values_list(*fields).iterator(chunk_size=2000):
        count += 1
        if sha256_hex(text) != stored_hash:
            record_faults(state, [Fault("hash", agent_id, f"Version {number} is not what its hash says.")])
        elif not is_canonical(text):
            record_faults(state, [Fault("snapshot", agent_id, f"Version {number} is not canonical JSON.")])
        if based_on is not None and based_on >= number:
            record_faults(state, [Fault("based_on", agent_id, f"Version {number} is based on version {based_on}.")])
    return count


def is_canonical(text: str) -> bool:
    try:
        return canonical(json.loads(text)) == text
    except ValueError:
        return False
