"""The runner over Celery: a message with the ID of a run wakes a worker, which claims the run.

The worker returns at once and drops the message if it has no free place: the row is what counts.
"""

from __future__ import annotations

import logging
from uuid import UUID

from agentcms.logs import describe_exception
from jobs_app.runner import broker_circuit
from runs_app.engine import workers
from runs_app.engine.engine import Engine, find_engine, get_engine
from runs_app.engine.runners.process import ProcessRunner

log = logging.getLogger(__name__)

PERFORM_RUN = "runs_app.tasks.perform_run"
QUEUE = "runs"


class CeleryRunner(ProcessRunner):
    """A runner that executes runs in workers. Without a worker or a broker, the process that dispatches a run does."""

    def find_local_engine(self) -> Engine | None:
        """Return the engine of this process if no worker can take a new run."""
        if workers.is_any_alive() and not broker_circuit.is_open:
            return None
        return super().find_local_engine()

    def dispatch(self, run_id: UUID) -> bool:
        """Send the ID of a queued run to the workers."""
        if workers.is_any_alive() and self.send(run_id):
            return True
        engine = get_engine()
        if not engine.is_stopping:
            log.warning("No worker can be reached, so this process executes run %s.", run_id)
            engine.offer(run_id)
        return False

    def send(self, run_id: UUID) -> bool:
        """Send the ID of a run. Return False if the broker does not respond."""
        from celery import current_app

        if not broker_circuit.allows_call():
            return False
        try:
            with current_app.producer_or_acquire() as producer:
                current_app.send_task(PERFORM_RUN, [str(run_id)], producer=producer, queue=QUEUE)
        except Exception as error:  # each transport of Celery has its own errors
            broker_circuit.record_failure()
            log.warning("The broker is unavailable: %s", describe_exception(error))
            return False
        broker_circuit.record_success()
        return True

    def drain(self) -> None:
        """Queue the durable runs of this process again and wake other workers."""
        if (engine := find_engine()) is not None:
            for run_id in engine.stop():
                self.send(run_id)
