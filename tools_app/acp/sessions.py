"""The running ACP agents of this process: one for each team, conversation, agent and version.

Imports the ACP library, which is heavy. Import this module only where an agent is prompted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import IntegrityError
from django.utils import timezone

from agentcms.db.outages import OUTAGE_ERRORS
from agentcms.wire.validation import find_json_faults
from runs_app.engine.thread_pools import run_db
from tools_app.acp.cached_agents import AcpRecord, acp_table, get_available_agent, switched_off_reason
from tools_app.acp.connection.process import AgentProcess
from tools_app.acp.errors import RecordChanged
from tools_app.acp.workspaces.folders import workspace_folder
from tools_app.models import AcpSession
from tools_app.shared_pool import PoolEntry, PoolLimits, SharedPool

MAX_ACP_PROCESSES = 8  # of one event loop
MAX_PROCESSES_OF_TEAM = 6  # for the runs of one team: others need not wait for its prompts
PROCESS_IDLE_SECONDS = 600.0  # after which a process that nobody uses is ended
CHECK_INTERVAL = 1.0  # seconds between checks whether the agents that run may still be used
MAX_SESSION_ID_LENGTH = 256  # characters
NEW_SESSION_MESSAGE = "The agent could not load its earlier session, so it does not remember this conversation."


@dataclass(frozen=True)
class WorkPlace:
    """The run that an agent works for."""

    run_id: UUID
    root_id: UUID
    owner_id: str
    thread_id: int | None = None


ProcessKey = tuple[str, int | None, str, str]  # the team, the conversation, the agent, and its revision


@dataclass
class Slot(PoolEntry):
    """A place for a process, with those who wait for it or use it. The lock belongs to the one who uses it."""

    process: AgentProcess | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_running


class AgentPool(SharedPool[ProcessKey | object, Slot]):
    """The running agents of one event loop."""

    def __init__(self) -> None:
        super().__init__(PoolLimits(MAX_ACP_PROCESSES, MAX_PROCESSES_OF_TEAM, PROCESS_IDLE_SECONDS))
        self.checking: asyncio.Task[None] | None = None  # while there are processes

    @asynccontextmanager
    async def use(self, record: AcpRecord, place: WorkPlace) -> AsyncIterator[tuple[AgentProcess, str]]:
        """Yield a running agent that nobody else uses meanwhile, and a note about its session.

        Raise AcpError, and RecordChanged if the record was changed while this waited for its turn.
        """
        keeps_session = record.persists_session and place.thread_id is not None
        key: ProcessKey | object = (place.owner_id, place.thread_id, record.key, record.revision)
        if not keeps_session:
            # A key of its own: another run must not find the process, which knows this conversation.
            key = object()
        slot = await self.take(key, place.owner_id, lambda: Slot(place.owner_id))
        try:
            async with slot.lock:
                # Again: while this waited for its turn, the agent may have been disabled, deleted or changed.
                if (await run_db(get_available_agent, record.key)).revision != record.revision:
                    raise RecordChanged
                self.check_regularly()
                note = ""
                if slot.process is None or not slot.process.is_running:
                    self.end(slot)  # what a program that ended by itself has left, such as its proxy
                    slot.process, note = await start_process(record, place, keeps_session=keeps_session)
                yield slot.process, note
        finally:
            # Those who wait for the slot start another process in it.
            if slot.users == 1 and not (keeps_session and slot.is_running):
                self.discard(key, slot)
            self.release(key, slot)

    def check_regularly(self) -> None:
        """End the processes of agents that are switched off or changed, from now until there are none."""
        if self.checking is None or self.checking.done():
            self.checking = asyncio.get_running_loop().create_task(self._check_regularly())

    async def _check_regularly(self) -> None:
        while self.entries:
            await asyncio.sleep(CHECK_INTERVAL)
            with suppress(*OUTAGE_ERRORS):  # the next check finds what this one could not read
                self.end_outdated((await run_db(acp_table.get)).records)

    def end_outdated(self, records: Mapping[str, AcpRecord]) -> None:
        """End the processes of agents that may no longer be used, and idle ones of earlier records."""
        for key, slot in list(self.entries.items()):
            process = slot.process
            if process is None:
                continue
            if reason := switched_off_reason(records, process.record):
                process.switch_off(reason)
            if reason or records[process.record.key].revision != process.record.revision:
                self.close(key)  # unless a prompt is in progress

    def end(self, slot: Slot) -> None:
        """End the process of a slot."""
        if slot.process is not None:
            slot.process.kill_soon()


async def start_process(record: AcpRecord, place: WorkPlace, *, keeps_session: bool) -> tuple[AgentProcess, str]:
    """Start an agent with the session of its conversation. Return it with a note if it has lost the session."""
    folder: Path = await run_db(workspace_folder, place.owner_id, place.thread_id, place.root_id, record.workspace)
    earlier = await run_db(stored_session, record, place) if keeps_session else ""
    process = AgentProcess(record, folder)
    is_earlier = await process.start(earlier)
    if keeps_session and not is_earlier:
        try:
            await run_db(store_session, record, place, process.session_id)
        except BaseException:  # also when the caller is cancelled: no slot has the program yet, and it would go on
            process.kill_soon()
            raise
    return process, NEW_SESSION_MESSAGE if earlier and not is_earlier else ""


def stored_session(record: AcpRecord, place: WorkPlace) -> str:
    """Return the session of an agent in a conversation, or a blank text."""
    rows = AcpSession.objects.filter(agent=record.pk, thread=place.thread_id, owner_id=place.owner_id)
    rows = rows.filter(version_number=record.version_number)
    return rows.values_list("session_id", flat=True).first() or ""


def store_session(record: AcpRecord, place: WorkPlace, session_id: str) -> None:
    """Store the session of an agent in a conversation, unless either was deleted.

    An ID that cannot be stored as it is would not be found again: the agent begins another session later.
    """
    if len(session_id) > MAX_SESSION_ID_LENGTH or any(find_json_faults(session_id)):
        return
    key: dict[str, Any] = {"agent_id": record.pk, "thread_id": place.thread_id, "owner_id": place.owner_id}
    values = {
        "session_id": session_id,
        "version_number": record.version_number,
        "updated_at": timezone.now(),
    }
    try:
        AcpSession.objects.update_or_create(**key, defaults=values)
    except IntegrityError:
        return


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, AgentPool] = WeakKeyDictionary()


def agent_pool() -> AgentPool:
    """Return the running agents of the running event loop."""
    return _pools.setdefault(asyncio.get_running_loop(), AgentPool())
