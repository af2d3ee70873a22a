"""The runner over Celery: a message with the ID of a run wakes a worker, which claims the run.

The worker returns at once and drops the message if it has no free slot: the row is what counts.
"""

from __future__ import annotations

from uuid import UUID

from jobs_app.runner import broker_circuit
from runs_app.engine.runners.messages import MessageRunner

PERFORM_RUN = "runs_app.tasks.perform_run"
QUEUE = "runs"


class CeleryRunner(MessageRunner):
    """A runner that sends the IDs of runs to the Celery workers that consume the queue `runs`."""

    service = "The broker"
    circuit = broker_circuit

    def send_message(self, run_id: UUID) -> None:
        from celery import current_app

        with current_app.producer_or_acquire() as producer:
            current_app.send_task(PERFORM_RUN, [str(run_id)], producer=producer, queue=QUEUE)
