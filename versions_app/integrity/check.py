"""The integrity check of all histories: pointers, numbers, hashes, snapshots and triggers.

A repair never loses data. It sets a dangling pointer, records an unrecorded row, raises a counter or reinstalls a
trigger. Other faults, such as a snapshot that does not match its hash, are only reported.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery

from agentcms.db.column_values import ColumnValues
from agentcms.db.statements import write_batch
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONObject
from agents_app.editing.change_context import change
from agents_app.models import Agent, search_index
from agents_app.search.database_objects import is_search_index_installed, reinstall_search_index
from jobs_app.models import Job
from versions_app.integrity import triggers
from versions_app.models import Activation, AgentVersion
from versions_app.publishing import build_activation

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class HistoryAnnotations(TypedDict):
        lowest: Any
        highest: Any
        logged: Any

    CheckedAgent = WithAnnotations[Agent, HistoryAnnotations]

log = logging.getLogger(__name__)

CHECK_HISTORY = "check_history"
# Agents and versions that are read at a time; each may have several megabytes.
CHECK_BATCH_SIZE = 20
MAX_LISTED_FAULTS = 1000
RESULT_KEYS = ("versions", "repaired", "counts", "faults")
CATCH_UP_MESSAGE = "Caught up with changes made outside the application"
UNREADABLE = (ValueError, TypeError, KeyError)  # what a version raises whose snapshot is not a configuration


@dataclass(frozen=True)
class Fault:
    """A violated invariant. `kind` is a stable identifier."""

    kind: str
    agentId: str  # a wire name, because the result of the job is shown as it is
    message: str
    repaired: bool = False


def run_check(job: Job) -> JSONObject:
    """Check every agent and version in batches. With `repair`, repair the faults that can be repaired."""
    repair = bool(job.parameters.get("repair"))
    state: JSONObject = job.cursor or {"after": "", "versions": 0, "counts": {}, "repaired": 0, "faults": []}
    if job.cursor is None:
        record_faults(state, [*check_trigger(repair), *check_search_triggers(repair)])
        job.report_progress(done=0, total=Agent.objects.count(), cursor=state)
    while batch := list(agents_to_check().filter(pk__gt=state["after"]).order_by("pk")[:CHECK_BATCH_SIZE]):
        ids = [agent.pk for agent in batch]
        for agent in batch:
            record_faults(state, check_agent(agent, repair))
            # Its rows of the index refer to the agent, so that it would stay in memory until the garbage collection.
            vars(agent).pop("_prefetched_objects_cache", None)
        del agent, batch
        state["versions"] += check_versions(ids, state)
        state["after"] = ids[-1]
        job.report_progress(done=job.done + len(ids), cursor=state)
    fault_count = sum(state["counts"].values())
    if unrepaired := fault_count - state["repaired"]:
        log.error("The history check found %d unrepaired faults. See job %s.", unrepaired, job.pk)
    return {"agents": job.done, "found": fault_count, **{key: state[key] for key in RESULT_KEYS}}


def record_faults(state: JSONObject, faults: list[Fault]) -> None:
    counts: Counter[str] = Counter(state["counts"])
    for fault in faults:
        counts[fault.kind] += 1
        state["repaired"] += fault.repaired
        if len(state["faults"]) < MAX_LISTED_FAULTS:
            state["faults"].append(asdict(fault))
    state["counts"] = dict(counts)


def check_trigger(repair: bool) -> list[Fault]:
    if triggers.is_trigger_installed():
        return []
    if repair:
        triggers.install_trigger("default")
    return [Fault("trigger", "", "The trigger that protects versions from changes is missing.", repair)]


def check_search_triggers(repair: bool) -> list[Fault]:
    if is_search_index_installed():
        return []
    if repair:
        reinstall_search_index()
    return [Fault("search", "", "The triggers that maintain the search index are missing.", repair)]


def agents_to_check() -> QuerySet[CheckedAgent]:
    """Return agents with their two versions, index rows, lowest and highest number, and the logged live version."""
    numbers = AgentVersion.objects.filter(agent=OuterRef("pk")).values("version_number")
    moves = Activation.objects.filter(agent=OuterRef("pk")).order_by("-pk")
    agents = (
        Agent.objects.with_versions()
        .prefetch_related("index")
        .annotate(
            lowest=Subquery(numbers.order_by("version_number")[:1]),
            highest=Subquery(numbers.order_by("-version_number")[:1]),
            logged=Subquery(moves.values("to_version_id")[:1]),
        )
    )
    return cast("QuerySet[CheckedAgent]", agents)


def check_agent(agent: CheckedAgent, repair: bool) -> list[Fault]:
    """Return the faults of an agent. Recheck it under its lock if there are any."""
    if not any(find_agent_faults(agent)):
        return []
    # The batch was read without locks, so that a save meanwhile may look like a fault.
    with transaction.atomic():
        # In a statement of its own: one that waited for the lock would read the versions as they were before.
        Agent.objects.filter(pk=agent.pk).lock_ids()
        row = agents_to_check().filter(pk=agent.pk).first()
        faults = list(find_agent_faults(row)) if row else []
        if row is None or not faults or not repair:
            return faults
        try:
            with transaction.atomic():
                repair_row(row)
        except UNREADABLE:
            return faults
        remaining = {fault.kind for fault in find_agent_faults(agents_to_check().get(pk=row.pk))}
        return [replace(fault, repaired=fault.kind not in remaining) for fault in faults]


def find_agent_faults(agent: CheckedAgent) -> Iterator[Fault]:
    """Yield the faults of an annotated agent row."""
    yield from find_pointer_faults(agent, "active", agent.active_version)
    yield from find_pointer_faults(agent, "head", agent.head_version)
    head = agent.head_version
    if head is not None and owns_version(agent, head) and sha256_hex(agent.snapshot_text) != head.snapshot_hash:
        yield Fault("row", agent.pk, f"The row differs from its head, version {head.version_number}.")
    if (agent.highest or 0) > agent.last_version_number:
        message = f"The version counter is {agent.last_version_number}, but version {agent.highest} exists."
        yield Fault("counter", agent.pk, message)
    if agent.lowest == 0:
        yield Fault("number", agent.pk, "A version has the number 0.")
    if agent.active_version_id and agent.logged != agent.active_version_id:
        yield Fault("activation", agent.pk, "The newest live history entry does not name the live version.")
    if not is_indexed(agent):
        yield Fault("index", agent.pk, "The search index differs from the versions.")


def find_pointer_faults(agent: Agent, name: str, version: AgentVersion | None) -> Iterator[Fault]:
    if version is None:
        yield Fault(f"{name}_missing", agent.pk, f"The {name} version is missing.")
    elif not owns_version(agent, version):
        yield Fault(f"{name}_foreign", agent.pk, f"The {name} version belongs to agent {version.agent_id}.")


def is_indexed(agent: Agent) -> bool:
    """Return True if the search index matches the agent. An unreadable version is a different fault."""
    if not (owns_version(agent, agent.active_version) and owns_version(agent, agent.head_version)):
        return True
    try:
        return search_index.index_is_current(agent)
    except UNREADABLE:
        return True


def reindex_agent(agent: Agent) -> bool:
    """Rebuild the index rows of an agent if they are wrong. Return True if they were.

    The `index` of the agent may be prefetched.
    """
    if is_indexed(agent):
        return False
    with transaction.atomic():
        row = Agent.objects.get_locked(agent.pk)
        # Again under the lock: a save may have written the index since the batch was read.
        if is_wrong := not is_indexed(row):
            search_index.rebuild_index(row)
    return is_wrong


def repair_row(row: CheckedAgent) -> None:
    """Repair an agent without losing data. The caller holds the lock of the row."""
    newest = row.versions.order_by("-version_number").first()
    number = max(row.last_version_number, newest.version_number if newest else 0)
    values: ColumnValues = {"last_version_number": number, "revision": row.revision + 1}
    if not owns_version(row, row.head_version):
        values["head_version"] = newest
    if not owns_version(row, row.active_version):
        values["active_version"] = row.versions.filter(pk=row.logged).first() or newest
    Agent.objects.filter(pk=row.pk).update_unguarded(**values)
    # After the pointers: `record()` compares the row with the head that was just set.
    with change(message=CATCH_UP_MESSAGE):
        AgentVersion.objects.record(Agent.objects.get(pk=row.pk))
        repaired = agents_to_check().get(pk=row.pk)
        if repaired.active_version and repaired.logged != repaired.active_version_id:
            before = row.versions.filter(pk=repaired.logged).first()
            write_batch.insert_row(build_activation(repaired, before, repaired.active_version, CATCH_UP_MESSAGE))
    reindex_agent(repaired)


def owns_version(row: Agent, version: AgentVersion | None) -> bool:
    return version is not None and version.agent_id == row.pk


def check_versions(agent_ids: Sequence[str], state: JSONObject) -> int:
    """Record the faults of the versions of these agents. Return the number of versions."""
    versions = AgentVersion.objects.filter(agent__in=agent_ids).order_by()
    fields = ("agent_id", "version_number", "based_on", "snapshot_text", "snapshot_hash")
    count = 0
    for agent_id, number, based_on, text, stored_hash in versions.values_list(*fields).iterator(CHECK_BATCH_SIZE):
        count += 1
        if sha256_hex(text) != stored_hash:
            record_faults(state, [Fault("hash", agent_id, f"Version {number} does not match its hash.")])
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
