"""Streams of background tasks: all that a user may see, or those of one run until none is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import Error as DatabaseError
from django.db.models import Q
from django.utils import timezone

from access_app.caller import Caller
from agentcms.db.connections import return_connection
from agentcms.db.outages import read_through_outage
from agentcms.wire.json_types import JSONObject
from memory_app.realms import refresh_credentials
from runs_app.background.child_waits import suspend_payloads
from runs_app.background.stream_chunks import end_chunk, output_chunk, progress_chunk, running_chunk, suspended_chunk
from runs_app.events.stream_chunks import StreamChunk, encode_chunk
from runs_app.events.streams import (
    HEARTBEAT,
    KEEP_ALIVE,
    Batch,
    ServerSentEvents,
    StreamSlot,
    follow_events,
    stopping,
)
from runs_app.events.thread_streams import CLOCK_TOLERANCE
from runs_app.models import BackgroundTask, BackgroundTaskDelivery
from runs_app.models.background_task import BackgroundTaskQuerySet, TaskStatus

TASK_POLL_INTERVAL = 0.5  # seconds between reads of the tasks
PROGRESS_INTERVAL = 5.0  # seconds between chunks that say which tasks are left
MAX_TASKS_PER_READ = 200
ENDS_REMEMBERED = timedelta(minutes=5)  # more than the difference between the clocks of two machines
TASK_STREAM_SECONDS = 3600.0  # after which the reader opens another stream
FINISHED_STATUSES = {*BackgroundTask.Status.values} - {*BackgroundTask.UNFINISHED_STATUSES}
DEFAULT_MAX_IDLE_MS = 5 * 60 * 1000


@dataclass
class TaskObserver:
    """The last seen state of tasks, from which the chunks of their changes follow."""

    # Status, the time of its end or since which it waits, and progress.
    seen: dict[UUID, tuple[str, datetime | None, str]] = field(default_factory=dict)

    def current(self, tasks: BackgroundTaskQuerySet, since: datetime) -> BackgroundTaskQuerySet:
        """Filter to the tasks that have begun, and have not ended before a time or when they were seen last.

        Those that still wait for a person, as when they were seen last, are left out too.
        """
        begun = tasks.filter(Q(finished_at=None) | Q(finished_at__gte=since)).exclude(status=TaskStatus.PENDING)
        begun = begun.exclude(pk__in=self.ended_ids)
        # Tasks may wait for people for days, and very many of them would hide the younger ones.
        waits = {pk: at for pk, (status, at, _) in self.seen.items() if status == TaskStatus.SUSPENDED and at}
        if not waits:
            return begun
        return begun.exclude(pk__in=[*waits], status=TaskStatus.SUSPENDED, suspended_at__lte=max(waits.values()))

    @property
    def ended_ids(self) -> list[UUID]:
        """The tasks whose ends were seen. Nothing happens to them any more."""
        return [pk for pk, (status, *_) in self.seen.items() if status in FINISHED_STATUSES]

    def skip_ended(self, tasks: BackgroundTaskQuerySet) -> None:
        """Treat ended tasks as seen, by their IDs: a clock that is behind may have set their times."""
        rows = tasks.values_list("pk", "status", "finished_at")
        self.seen |= {pk: (status, finished_at, "") for pk, status, finished_at in rows}

    def forget_ended(self, before: datetime) -> None:
        """Forget the tasks that ended before a time. The reader leaves them out by this time from now on."""
        self.seen = {
            pk: seen
            for pk, seen in self.seen.items()
            if seen[0] not in FINISHED_STATUSES or seen[1] is None or seen[1] >= before
        }

    def read(self, tasks: Iterable[BackgroundTask]) -> list[StreamChunk]:
        """Return the chunks of what has happened to tasks. If the database fails meanwhile, nothing was seen."""
        before = {**self.seen}
        try:
            rows = [*tasks]
            waits_for = suspend_payloads(task for task in rows if self.waits_anew(task))
            return [chunk for task in rows for chunk in self.changes(task, waits_for.get(task.pk))]
        except DatabaseError:
            self.seen = before
            raise

    def waits_anew(self, task: BackgroundTask) -> bool:
        """Return whether a task waits for a person, and was not seen to wait for the same decision."""
        status, waited_since, _ = self.seen.get(task.pk, ("", None, ""))
        return task.status == TaskStatus.SUSPENDED and (status, waited_since) != (task.status, task.suspended_at)

    def changes(self, task: BackgroundTask, waits_for: JSONObject | None) -> Iterator[StreamChunk]:
        """Yield the chunks of what has happened to a task since it was seen last.

        `waits_for` are the calls for which it waits again, if it does.
        """
        waits_anew = self.waits_anew(task)
        before, waited_since, progress_before = self.seen.get(task.pk, (TaskStatus.PENDING.value, None, ""))
        progress = repr(task.progress or "")
        self.seen[task.pk] = (task.status, task.finished_at or task.suspended_at, progress)
        was_resumed = before == TaskStatus.SUSPENDED and task.suspended_at != waited_since
        if before == TaskStatus.PENDING and task.started_at is not None:
            yield running_chunk(task)
        if was_resumed:
            yield running_chunk(task, is_resumed=True)
        if progress not in (progress_before, repr("")):
            yield output_chunk(task)
        if waits_anew:
            yield suspended_chunk(task, waits_for)
        if task.is_finished and before not in FINISHED_STATUSES:
            yield end_chunk(task)


def follow_tasks(tasks: Callable[[], BackgroundTaskQuerySet]) -> Iterator[list[StreamChunk]]:
    """Yield the chunks of tasks from now on, first of those that run. An empty list is a heartbeat."""
    observer, since, sent_at = TaskObserver(), timezone.now() - CLOCK_TOLERANCE, time.monotonic()
    read_through_outage(stopping, observer.skip_ended, tasks().filter(finished_at__gte=since))
    ends_at = sent_at + TASK_STREAM_SECONDS
    while not stopping.is_set() and time.monotonic() < ends_at:
        read_at = timezone.now()
        current = observer.current(tasks(), since).order_by("created_at", "number")[:MAX_TASKS_PER_READ]
        chunks = read_through_outage(stopping, observer.read, current)
        return_connection()
        if chunks or time.monotonic() - sent_at >= HEARTBEAT:
            yield chunks
            sent_at = time.monotonic()
        if len(current) < MAX_TASKS_PER_READ:  # otherwise some were not read
            since = max(since, read_at - ENDS_REMEMBERED)
            observer.forget_ended(since)
        stopping.wait(TASK_POLL_INTERVAL)


class TaskStream(ServerSentEvents):
    """The changes of background tasks.

    `tasks` returns those that the user may see now.
    """

    def __init__(self, tasks: Callable[[], BackgroundTaskQuerySet], user: Caller, slot: StreamSlot) -> None:
        super().__init__(slot)
        self.user = user
        self.tasks = tasks

    def visible_tasks(self) -> BackgroundTaskQuerySet:
        """Return the tasks that the user may see, who may no longer be a superuser."""
        if self.user.is_superuser:
            read_through_outage(stopping, refresh_credentials, self.user)
        return self.tasks()

    def generate_blocks(self) -> Iterator[bytes]:
        yield KEEP_ALIVE  # the response headers are sent with the first bytes
        for chunks in follow_tasks(self.visible_tasks):
            # Memberships are part of the query of the tasks, but a revoked key is not.
            if not read_through_outage(stopping, refresh_credentials, self.user):
                return
            return_connection()
            yield (
                b"".join(b"data: %s\n\n" % encode_chunk(chunk["payload"]["runId"], chunk) for chunk in chunks)
                or KEEP_ALIVE
            )


# --- Until idle


@dataclass
class IdleWatch:
    """The tasks of a run, of the runs that their results woke, and so on, while a stream waits for all of them."""

    run_ids: set[UUID]
    max_idle: float  # seconds without a chunk after which the stream ends
    observer: TaskObserver = field(default_factory=TaskObserver)
    started: float = field(default_factory=time.monotonic)
    progress_at: float = 0.0

    @property
    def tasks(self) -> BackgroundTaskQuerySet:
        return BackgroundTask.objects.filter(run__in=self.run_ids)

    def is_waiting(self) -> bool:
        """Return whether a task or a result is left."""
        # Results without a thread become events of their run, which this stream has sent already.
        is_result_due = Q(is_delivery_due=True, thread__isnull=False)
        return self.tasks.filter(Q(status__in=BackgroundTask.UNFINISHED_STATUSES) | is_result_due).exists()

    def read(self) -> Batch:
        """Return the chunks since the last read, without numbers."""
        # A result may have 256 kB, and the stream of an answer reads ten times a second.
        unsent = self.tasks.exclude(pk__in=self.observer.ended_ids)
        tasks = list(unsent.order_by("created_at", "number"))
        chunks = self.observer.read(tasks)
        unfinished = [task for task in tasks if not task.is_finished]
        if unfinished and time.monotonic() - self.progress_at >= PROGRESS_INTERVAL:
            self.progress_at = time.monotonic()
            chunks.append(progress_chunk(unfinished, int(1000 * (time.monotonic() - self.started))))
        return [(0, chunk) for chunk in chunks]

    def woken_runs(self) -> list[UUID]:
        """Return the runs that results have woken and that were not followed yet."""
        deliveries = BackgroundTaskDelivery.objects.filter(task__run__in=self.run_ids, woken_run_id__isnull=False)
        woken = deliveries.order_by("created_at").values_list("woken_run_id", flat=True)
        return [run_id for run_id in dict.fromkeys(woken) if run_id is not None and run_id not in self.run_ids]


def follow_until_idle(run_id: UUID, after: int, max_idle: float) -> Iterator[Batch]:
    """Yield the events of a run, then those of its background tasks and of the runs that their results wake.

    Chunks of tasks have the number 0. An empty batch is a heartbeat.
    """
    watch = IdleWatch({run_id}, max_idle)
    yield from follow_run_with_tasks(run_id, after, watch)
    sent_at = beat_at = time.monotonic()
    while not stopping.is_set() and time.monotonic() - sent_at < max_idle:
        # Before the read, which then has the end of each task that was not left.
        is_left = read_through_outage(stopping, watch.is_waiting)
        batch = read_through_outage(stopping, watch.read)
        woken = read_through_outage(stopping, watch.woken_runs)
        return_connection()
        if batch:
            yield batch
        for woken_id in woken:
            watch.run_ids.add(woken_id)
            yield from follow_run_with_tasks(woken_id, 0, watch)
        if not (is_left or woken):
            return
        if batch or woken:
            sent_at = time.monotonic()
        if time.monotonic() - beat_at >= HEARTBEAT:
            yield []
            beat_at = time.monotonic()
        stopping.wait(TASK_POLL_INTERVAL)


def follow_run_with_tasks(run_id: UUID, after: int, watch: IdleWatch) -> Iterator[Batch]:
    """Yield the events of a run, and between them the chunks of the tasks."""
    for batch in follow_events(run_id, after):
        # The stream has the chunks of the tasks themselves: a result that became an event would come twice.
        events = [(number, {**chunk, "runId": str(run_id)}) for number, chunk in batch if not is_task_end(chunk)]
        if events or not batch:
            yield events
        if tasks := read_through_outage(stopping, watch.read):
            yield tasks


def is_task_end(chunk: StreamChunk) -> bool:
    return chunk["type"] in {"background-task-completed", "background-task-failed", "background-task-cancelled"}
