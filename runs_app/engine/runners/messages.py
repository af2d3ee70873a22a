"""The common part of runners that wake a worker with a message of another service.

A message carries only the ID of a run. It may be lost, or arrive twice: the row of the run is what counts.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from uuid import UUID

from agentcms.backends.circuit_breaker import CircuitBreaker
from agentcms.logs import describe_service_error
from runs_app.engine import workers
from runs_app.engine.engine import Engine, find_engine, get_engine
from runs_app.engine.runners.process import ProcessRunner

log = logging.getLogger(__name__)

MESSAGE_TIMEOUT = 2.0  # seconds
MESSAGE_THREADS = 4


class MessageRunner(ProcessRunner):
    """A runner that executes runs in workers. Without a worker or the service, the process itself does."""

    service: str  # its name in log lines
    circuit: CircuitBreaker  # of the calls of the service
    reaches_workers = True  # the state that was logged last

    def __init__(self) -> None:
        self.free_threads = threading.BoundedSemaphore(MESSAGE_THREADS)

    def send_message(self, run_id: UUID) -> None:
        """Send the ID of a run. Raise any exception if the service does not respond."""
        raise NotImplementedError

    @property
    def can_be_reached(self) -> bool:
        """Return whether a message would reach a process that executes runs."""
        return workers.is_any_alive()

    def find_local_engine(self) -> Engine | None:
        """Return the engine of this process if no worker can take a new run."""
        if self.can_be_reached and not self.circuit.is_open:
            return None
        self.log_reach(is_reached=False)
        return super().find_local_engine()

    def dispatch(self, run_id: UUID) -> bool:
        """Send the ID of a queued run to the workers."""
        if self.can_be_reached and self.send(run_id):
            self.log_reach(is_reached=True)
            return True
        engine = get_engine()
        if not engine.is_stopping:
            self.log_reach(is_reached=False)
            engine.offer(run_id)
        return False

    def log_reach(self, *, is_reached: bool) -> None:
        """Log that workers can be reached or not, once for each change and not for each run."""
        if is_reached == self.reaches_workers:
            return
        self.reaches_workers = is_reached
        if is_reached:
            log.info("Workers can be reached again and execute the runs that start now.")
        else:
            log.warning("No worker can be reached, so this process executes runs itself.")

    def send(self, run_id: UUID) -> bool:
        """Send the ID of a run. Return False if the service does not respond."""
        if not self.circuit.allows_call():
            return False
        try:
            self.send_in_thread(run_id)
        except Exception as error:  # each service has errors of its own
            self.circuit.record_failure()
            # A message has only the ID of a run.
            log.warning("%s is unavailable: %s", self.service, describe_service_error(error))
            return False
        self.circuit.record_success()
        return True

    def send_in_thread(self, run_id: UUID) -> None:
        """Send the ID of a run within MESSAGE_TIMEOUT, or raise an exception.

        A service that hangs keeps the thread for longer. As a daemon, it does not keep the process from ending.
        """
        if not self.free_threads.acquire(timeout=MESSAGE_TIMEOUT):
            raise TimeoutError("Earlier messages have not been sent yet.")
        sent: Future[None] = Future()

        def send() -> None:
            try:
                self.send_message(run_id)
            except BaseException as error:
                sent.set_exception(error)
            else:
                sent.set_result(None)
            finally:
                self.free_threads.release()

        threading.Thread(target=send, name="run-message", daemon=True).start()
        sent.result(MESSAGE_TIMEOUT)

    def drain(self) -> None:
        """Queue the durable runs of this process again and wake other workers."""
        if (engine := find_engine()) is not None:
            for run_id in engine.stop():
                self.send(run_id)
