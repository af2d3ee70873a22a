"""The runner without messages: the process that starts a run executes it, and any process continues it."""

from __future__ import annotations

from uuid import UUID

from runs_app.engine.engine import Engine, find_engine, get_engine
from runs_app.events.notifications import notifier


class ProcessRunner:
    """A runner that executes runs in the processes of the web server."""

    def find_local_engine(self) -> Engine | None:
        """Return the engine of this process if it has a free slot."""
        engine = get_engine()
        return engine if engine.has_free_slot else None

    def dispatch(self, run_id: UUID) -> bool:
        """Execute a queued run in this process if it has a free slot."""
        get_engine().offer(run_id)
        return True

    def continue_here(self, run_id: UUID) -> None:
        get_engine().continue_run(run_id)

    def start_worker(self) -> None:
        """Do nothing: workers of Celery receive its messages by themselves."""

    def take_next(self) -> None:
        get_engine().take_queued()

    def stop(self, run_id: UUID) -> None:
        notifier.request_cancel(run_id)

    def drain(self) -> None:
        """Queue the durable runs of this process again. The reaper of another process finds them."""
        if (engine := find_engine()) is not None:
            engine.stop()
