"""The runner over Temporal: each message is a workflow of one activity, which a worker executes.

The activity sends a heartbeat each second. Temporal's server starts it again in another worker if they stop.
See https://docs.temporal.io/develop/python.

Imports temporalio, an optional dependency. Only `get_runner` imports this module.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from agentcms.backends.circuit_breaker import CircuitBreaker
from agentcms.logs import describe_service_error
from runs_app.engine.runners.messages import MESSAGE_TIMEOUT, MessageRunner
from runs_app.engine.runners.temporal_workflow import TEMPORAL_WORKFLOW, PerformRun, perform_activity

log = logging.getLogger(__name__)

TASK_QUEUE = "agentcms-runs"
SERVER_TIMEOUT = 30.0  # seconds in which a worker finds a server that is ready
SERVER_POLL_INTERVAL = 0.5  # seconds
START_POLL_INTERVAL = 0.05  # seconds
WORKER_STOP_TIMEOUT = 3.0  # seconds
TEMPORAL_PAUSE = 5.0  # seconds without messages after a failure

CallResult = TypeVar("CallResult")


class TemporalRunner(MessageRunner):
    """A runner that starts a workflow of Temporal for each run."""

    service = "The server of Temporal"

    def __init__(self) -> None:
        super().__init__()
        self.circuit = CircuitBreaker(TEMPORAL_PAUSE)
        self.client: Client | None = None
        self.worker: Any = None
        # The client belongs to the event loop in which it connects.
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="temporal", daemon=True).start()

    def call(self, call: Coroutine[Any, Any, CallResult]) -> Future[CallResult]:
        return asyncio.run_coroutine_threadsafe(call, self.loop)

    async def connect(self) -> Client:
        """Return the client. The first call connects it.

        Encryption and keys are those of Temporal's standard variables: `TEMPORAL_TLS`, `TEMPORAL_TLS_…` and
        `TEMPORAL_API_KEY`. See https://docs.temporal.io/develop/environment-configuration.
        """
        if self.client is None:
            options = ClientConfig.load_client_connect_config(disable_file=True)
            options.update({"target_host": settings.TEMPORAL_ADDRESS, "namespace": settings.TEMPORAL_NAMESPACE})
            self.client = await Client.connect(**options)
        return self.client

    def send_message(self, run_id: UUID) -> None:
        self.call(asyncio.wait_for(self.start_workflow(run_id), MESSAGE_TIMEOUT)).result()

    async def start_workflow(self, run_id: UUID) -> None:
        client = await self.connect()
        # A run is sent once for each segment and take-over, and Temporal refuses the ID of a workflow that still runs.
        await client.start_workflow(
            TEMPORAL_WORKFLOW, str(run_id), id=f"run-{run_id}-{uuid4().hex[:8]}", task_queue=TASK_QUEUE
        )

    def start_worker(self) -> None:
        """Execute the activities of the task queue in this process.

        Raise RuntimeError without a server, or if it does not have the namespace.
        """
        self.call(self.start_activities()).result()

    async def connect_when_ready(self) -> Client:
        """Return the client of a server that may start at the same time. Raise RuntimeError if it does not."""
        end = self.loop.time() + SERVER_TIMEOUT
        while True:
            try:
                return await asyncio.wait_for(self.connect(), end - self.loop.time())
            except RuntimeError:  # of temporalio: the server cannot be reached, or is not ready
                if self.loop.time() + SERVER_POLL_INTERVAL > end:
                    raise
            await asyncio.sleep(SERVER_POLL_INTERVAL)

    async def start_activities(self) -> None:
        self.worker = Worker(
            await self.connect_when_ready(),
            task_queue=TASK_QUEUE,
            workflows=[PerformRun],
            activities=[perform_activity],
            max_concurrent_activities=settings.RUNS_PER_WORKER,
            workflow_runner=UnsandboxedWorkflowRunner(),  # the workflow has no code of its own that could differ
        )
        # The event loop has only weak references to tasks: without this one, the worker could disappear.
        self.running = asyncio.ensure_future(self.worker.run())
        while not self.worker.is_running:
            await asyncio.wait([self.running], timeout=START_POLL_INTERVAL)
            if self.running.done():  # as if the namespace does not exist
                self.running.result()
        self.running.add_done_callback(end_process_after_failure)

    def drain(self) -> None:
        super().drain()
        if self.worker is not None:
            with suppress(TimeoutError):  # a server that hangs; the runs are handed over
                self.call(self.worker.shutdown()).result(WORKER_STOP_TIMEOUT)


def end_process_after_failure(running: asyncio.Future[None]) -> None:
    """End this process if its worker has failed, as after its namespace was deleted, so that it is started again.

    It would look healthy but execute no run.
    """
    error = None if running.cancelled() else running.exception()
    if error is not None:
        log.critical("This worker can no longer execute runs and ends: %s", describe_service_error(error))
        os.kill(os.getpid(), signal.SIGTERM)
